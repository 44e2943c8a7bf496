#include "plan/stand_in.h"

#include <vector>

#include "plan/ai_call.h"
#include "sql/ai_function.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

void OutermostCalls(const Json& node, std::vector<const Json*>& calls) {
  if (IsAiCall(node)) {
    calls.push_back(&node);
    return;
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) OutermostCalls(child, calls);
}

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

/// No literal: those mean positions in GROUP BY and ORDER BY.
std::string_view StandIn(const Json& call) {
  switch (sql::FindAiFunction(sql::FunctionName(call))->readout) {
    case sql::Readout::kVerdict:
      return AsksForErrorDetails(call) ? "{'value':1=1,'error':''||''}" : "(1=1)";
    case sql::Readout::kProbability:
      return "(1e0+0)";
    case sql::Readout::kTokenCount:
    case sql::Readout::kOther:
      return "(1+1)";
  }
  return "(1=1)";
}

}  // namespace

std::optional<std::string> WithStandIns(std::string_view query, const Json& tree) {
  std::vector<const Json*> calls;
  OutermostCalls(tree, calls);
  std::string out(query);
  for (const Json* call : calls) {
    const auto begin = sql::LocationOf(*call);
    if (!begin ||
        !sql::LowerCase(query.substr(std::min(*begin, query.size()), 3)).starts_with("ai_")) {
      return std::nullopt;
    }
    const std::size_t end = EndOfCall(query, *begin);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view stand_in = StandIn(*call);
    if (stand_in.size() > end - *begin) return std::nullopt;
    out.replace(*begin, end - *begin, end - *begin, ' ');
    out.replace(*begin, stand_in.size(), stand_in);
  }
  return out;
}

std::string NamedByCalls(std::string message) {
  static constexpr struct {
    std::string_view printed;
    std::string_view name;
  } kNames[] = {{"\"(1 = 1)\"", "\"ai_filter\""},
                {"\"(1.0 + 0)\"", "\"ai_prob\""},
                {"\"(1 + 1)\"", "\"ai_count_tokens\""}};
  for (const auto& [printed, name] : kNames) {
    for (std::size_t at = 0; (at = message.find(printed, at)) != message.npos; at += name.size()) {
      message.replace(at, printed.size(), name);
    }
  }
  return message;
}

std::string WithArgumentsAlone(std::string_view query, const Json& tree) {
  std::string out(query);
  const auto rename = [&](const auto& self, const Json& node) -> void {
    constexpr std::string_view kHash = "hash";
    const std::string name = sql::FunctionName(node);
    const auto begin = sql::LocationOf(node);
    const bool ours = (IsAiCall(node) || name == "prompt") && begin && *begin < query.size();
    if (ours && sql::SameWord(query.substr(*begin, name.size()), name)) {
      out.replace(*begin, name.size(), std::string(name.size() - kHash.size(), ' ').append(kHash));
    }
    if (!node.is_structured()) return;
    for (const Json& child : node) self(self, child);
  };
  rename(rename, tree);
  return out;
}

}  // namespace quail::plan
