#include "plan/stand_in.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/result_names.h"
#include "sql/ai_function.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// One past the parenthesis that closes the first one at or after `begin`; npos if there is none.
std::size_t EndOfCall(std::string_view query, std::size_t begin) {
  std::size_t depth = 0;
  char quote = '\0';
  for (std::size_t i = begin; i < query.size(); ++i) {
    const char c = query[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

/// What stands around the list of a call's arguments.
struct Around {
  std::string_view before;
  std::string_view after;
};

/// No literals: those mean positions in GROUP BY and ORDER BY.
Around StandIn(const Json& call) {
  switch (sql::FindAiFunction(sql::FunctionName(call))->readout) {
    case sql::Readout::kVerdict:
      return AsksForErrorDetails(call) ? Around{"{'value': row", " IS NULL, 'error': '' || ''}"}
                                       : Around{"(row", " IS NULL)"};
    case sql::Readout::kProbability:
      return {"(CASE WHEN row", " IS NULL THEN 0e0 ELSE 1e0 END)"};
    case sql::Readout::kTokenCount:
    case sql::Readout::kOther:
      return {"(CASE WHEN row", " IS NULL THEN 0 ELSE 1 END)"};
  }
  return {};
}

/// row(..) takes any arguments, but no names.
bool NamesArguments(Json call) {
  return std::ranges::any_of(sql::ArgumentsOf(call),
                             [](const auto& argument) { return !argument.name.empty(); });
}

struct Edit {
  std::size_t offset = 0;
  std::size_t size = 0;  ///< of what is replaced
  std::string text;
};

class Editor {
 public:
  Editor(std::string_view query, StandInArguments arguments)
      : query_(query), arguments_(arguments) {}

  /// False where a call's text is not found.
  bool Visit(const Json& node) {
    if (IsAiCall(node)) return VisitCall(node);
    if (sql::TypeOf(node) == "SELECT_NODE") NameResults(node["select_list"]);
    return VisitChildren(node);
  }

  /// Whether the tree has every call of the text: of list(DISTINCT x ORDER BY x) the engine's
  /// parser keeps one x.
  bool HasAllCalls() const {
    char quote = '\0';
    for (std::size_t i = 0; i < query_.size(); ++i) {
      const char c = query_[i];
      if (quote != '\0' || c == '\'' || c == '"') {
        if (quote == '\0') {
          quote = c;
        } else if (c == quote) {
          quote = '\0';
        }
        continue;
      }
      if (!IsWordCharacter(c)) continue;
      const std::size_t end =
          static_cast<std::size_t>(std::find_if_not(query_.begin() + static_cast<std::ptrdiff_t>(i),
                                                    query_.end(), IsWordCharacter) -
                                   query_.begin());
      if (IsLeftCall(i, end)) return false;
      i = end - 1;
    }
    return true;
  }

  StandInQuery Result() {
    std::ranges::sort(edits_, {}, &Edit::offset);
    StandInQuery out;
    std::size_t at = 0;
    for (const Edit& edit : edits_) {
      out.map.Follow(out.sql.size(), at);
      out.sql += query_.substr(at, edit.offset - at);
      out.map.Stay(out.sql.size(), edit.offset);
      out.sql += edit.text;
      at = edit.offset + edit.size;
    }
    out.map.Follow(out.sql.size(), at);
    out.sql += query_.substr(at);
    return out;
  }

 private:
  bool VisitChildren(const Json& node) {
    if (!node.is_structured()) return true;
    return std::ranges::all_of(node, [this](const Json& child) { return Visit(child); });
  }

  bool VisitCall(const Json& call) {
    const auto begin = sql::LocationOf(call);
    const std::string name = sql::FunctionName(call);
    if (!begin || !IsWordAt(*begin, name)) return false;
    const std::size_t end = EndOfCall(query_, *begin);
    if (end == std::string_view::npos) return false;
    // The operand of a CASE stands in the tree once a WHEN.
    if (!seen_.insert(*begin).second) return true;
    const Around around = StandIn(call);
    const std::string name_after = NameBehind(call, end);
    if (arguments_ == StandInArguments::kDropped || NamesArguments(call)) {
      edits_.push_back({*begin, end - *begin,
                        fmt::format("{}(1){}{}", around.before, around.after, name_after)});
      return true;
    }
    edits_.push_back({*begin, name.size(), std::string(around.before)});
    edits_.push_back({end, 0, fmt::format("{}{}", around.after, name_after)});
    return VisitChildren(call) && VisitPrompts(call);
  }

  static bool IsWordCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  /// Whether the word is the name of a call that no edit stands for.
  bool IsLeftCall(std::size_t begin, std::size_t end) const {
    const std::string name = sql::LowerCase(query_.substr(begin, end - begin));
    if (!name.starts_with("ai_") || sql::FindAiFunction(name) == nullptr) return false;
    const std::size_t next = query_.find_first_not_of(" \t\n\r\f\v", end);
    if (next == std::string_view::npos || query_[next] != '(') return false;
    return std::ranges::none_of(edits_, [begin](const Edit& edit) {
      return edit.offset <= begin && begin < edit.offset + edit.size;
    });
  }

  /// Unaliased results have the calls' names.
  void NameResults(const Json& list) {
    std::map<std::string, int> used;
    for (const Json& result : list) {
      if (IsAiCall(result) && sql::AliasOf(result).empty())
        names_[&result] = CallName(result, used);
    }
  }

  /// Not where a parenthesis closes behind the call: it may be one around the call alone.
  std::string NameBehind(const Json& call, std::size_t end) const {
    const auto name = names_.find(&call);
    const std::size_t next = query_.find_first_not_of(" \t\n\r\f\v", end);
    const bool closes = next != std::string_view::npos && query_[next] == ')';
    return name == names_.end() || closes ? "" : fmt::format(" AS {}", name->second);
  }

  /// PROMPT(..) is no function of the engine.
  bool VisitPrompts(Json call) {
    for (const auto& argument : sql::ArgumentsOf(call)) {
      if (sql::FunctionName(*argument.value) != "prompt") continue;
      const auto begin = sql::LocationOf(*argument.value);
      if (!begin || !IsWordAt(*begin, "prompt")) return false;
      edits_.push_back({*begin, 6, "row"});
    }
    return true;
  }

  bool IsWordAt(std::size_t offset, std::string_view word) const {
    return offset <= query_.size() && sql::SameWord(query_.substr(offset, word.size()), word);
  }

  std::string_view query_;
  StandInArguments arguments_;
  std::vector<Edit> edits_;
  std::map<const Json*, std::string> names_;
  std::set<std::size_t> seen_;  ///< where calls begin
};

}  // namespace

Error StandInQuery::Moved(const Error& error) const {
  if (!error.position()) return error;
  TextPosition place = *error.position();
  place.offset = map.ToInput(place.offset);
  return {error.code(), error.what(), place};
}

std::optional<StandInQuery> WithStandIns(std::string_view query, const Json& tree,
                                         StandInArguments arguments) {
  Editor editor(query, arguments);
  if (!editor.Visit(tree) || !editor.HasAllCalls()) return std::nullopt;
  return editor.Result();
}

}  // namespace quail::plan
