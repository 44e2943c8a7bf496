#include "plan/stand_in.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/result_names.h"
#include "sql/ai_function.h"
#include "sql/lexer.h"
#include "sql/token_view.h"

namespace quail::plan {

namespace {

using sql::Json;

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
      : query_(query), tokens_(sql::Lex(query, sql::EngineRules())), arguments_(arguments) {}

  /// False where a call's text is not found.
  bool Visit(const Json& node) {
    if (IsAiCall(node)) return VisitCall(node);
    if (sql::TypeOf(node) == "SELECT_NODE") NameResults(node["select_list"]);
    return VisitChildren(node);
  }

  /// Whether the tree has every call of the text: of list(DISTINCT x ORDER BY x) the engine's
  /// parser keeps one x.
  bool HasAllCalls() const {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (IsLeftCall(i)) return false;
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
    const auto closing = begin ? ClosingOf(*begin, name) : std::nullopt;
    if (!closing) return false;
    const std::size_t end = tokens_[*closing].offset + 1;
    // The operand of a CASE stands in the tree once a WHEN.
    if (!seen_.insert(*begin).second) return true;
    const Around around = StandIn(call);
    const std::string name_after = NameBehind(call, *closing);
    if (arguments_ == StandInArguments::kDropped || NamesArguments(call)) {
      edits_.push_back({*begin, end - *begin,
                        fmt::format("{}(1){}{}", around.before, around.after, name_after)});
      return true;
    }
    edits_.push_back({*begin, name.size(), std::string(around.before)});
    edits_.push_back({end, 0, fmt::format("{}{}", around.after, name_after)});
    return VisitChildren(call) && VisitPrompts(call);
  }

  sql::TokenView View() const { return {query_, tokens_}; }

  /// Whether the token is the name of a call that no edit stands for.
  bool IsLeftCall(std::size_t i) const {
    if (tokens_[i].kind != sql::TokenKind::kWord || !View().SymbolAt(i + 1, "(")) return false;
    const std::string name = sql::LowerCase(sql::Spelling(query_, tokens_[i]));
    if (!name.starts_with("ai_") || sql::FindAiFunction(name) == nullptr) return false;
    return std::ranges::none_of(edits_, [begin = tokens_[i].offset](const Edit& edit) {
      return edit.offset <= begin && begin < edit.offset + edit.size;
    });
  }

  /// Unaliased results have the calls' names.
  void NameResults(const Json& list) {
    std::map<std::string, int> used;
    for (const Json& result : list) {
      if (IsAiCall(result) && sql::AliasOf(result).empty() && !HasNamesOfColumns(result))
        names_[&result] = CallName(result, used);
    }
  }

  /// Not where a parenthesis closes behind the call: it may be one around the call alone.
  std::string NameBehind(const Json& call, std::size_t closing) const {
    const auto name = names_.find(&call);
    return name == names_.end() || View().SymbolAt(closing + 1, ")")
               ? ""
               : fmt::format(" AS {}", name->second);
  }

  /// PROMPT(..) is no function of the engine.
  bool VisitPrompts(Json call) {
    for (const auto& argument : sql::ArgumentsOf(call)) {
      if (sql::FunctionName(*argument.value) != "prompt") continue;
      const auto begin = sql::LocationOf(*argument.value);
      if (!begin || !ClosingOf(*begin, "prompt")) return false;
      edits_.push_back({*begin, 6, "row"});
    }
    return true;
  }

  /// The token that closes the call of `name` at `offset`.
  std::optional<std::size_t> ClosingOf(std::size_t offset, std::string_view name) const {
    const auto found = std::ranges::lower_bound(tokens_, offset, {}, &sql::Token::offset);
    const auto i = static_cast<std::size_t>(found - tokens_.begin());
    const sql::TokenView view = View();
    const bool called = found != tokens_.end() && found->offset == offset && view.WordAt(i, name) &&
                        view.SymbolAt(i + 1, "(");
    if (!called) return std::nullopt;
    return view.FindAtTop(i + 2, [&view](std::size_t at) { return view.SymbolAt(at, ")"); });
  }

  std::string_view query_;
  std::vector<sql::Token> tokens_;
  StandInArguments arguments_;
  std::vector<Edit> edits_;
  std::map<const Json*, std::string> names_;
  std::set<std::size_t> seen_;  ///< where calls begin
};

/// A message that quotes a stand-in, as that of the field of a value without fields does, speaks of
/// the call.
std::string WithoutStandIn(std::string message) {
  constexpr std::string_view kBefore = "from expression \"";
  constexpr std::string_view kAfter = "\" because it is not a struct";
  const std::size_t begin = message.find(kBefore);
  const std::size_t end = message.rfind(kAfter);
  if (begin == message.npos || end == message.npos || end < begin) return message;
  const std::string_view quoted = std::string_view(message).substr(begin, end - begin);
  if (quoted.find("\"row\"(") == quoted.npos || quoted.find(" IS NULL") == quoted.npos) {
    return message;
  }
  message.replace(begin, end + 1 - begin, "from an AI call");
  return message;
}

}  // namespace

Error StandInQuery::Moved(const Error& error) const {
  const std::string message = WithoutStandIn(error.what());
  if (!error.position()) return {error.code(), message};
  TextPosition place = *error.position();
  place.offset = map.ToInput(place.offset);
  return {error.code(), message, place};
}

std::optional<StandInQuery> WithStandIns(std::string_view query, const Json& tree,
                                         StandInArguments arguments) {
  Editor editor(query, arguments);
  if (!editor.Visit(tree) || !editor.HasAllCalls()) return std::nullopt;
  return editor.Result();
}

}  // namespace quail::plan
