#include "session/on_demand_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace quail::session {
namespace {

using Json = nlohmann::json;

/// How the lookups of a call begin in the engine's plan.
std::vector<std::string> SpellingsOf(const plan::AskOnDemandStep& step, plan::CallId call) {
  std::vector<std::string> spellings;
  for (const char* function : {"quail_verdict", "quail_probability"}) {
    for (const char end : {',', ')'}) {
      spellings.push_back(fmt::format("{}({}{}", function, call.value(), end));
    }
  }
  for (std::size_t stop = 0; stop < step.stops.size(); ++stop) {
    for (const char* function : {"quail_verdict_until", "quail_probability_until"}) {
      spellings.push_back(fmt::format("{}({}, {},", function, stop, call.value()));
    }
  }
  return spellings;
}

const Json& ChildrenOf(const Json& node) {
  static const Json kNone = Json::array();
  const auto found = node.find("children");
  return found == node.end() ? kNone : *found;
}

/// The engine's estimate for an operator of its plan, else that of what it reads.
double RowsOf(const Json& node) {
  const auto info = node.find("extra_info");
  if (info != node.end() && info->contains("Estimated Cardinality")) {
    const auto text = (*info)["Estimated Cardinality"].get<std::string>();
    double rows = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), rows);
    if (read.ec == std::errc()) return rows;
  }
  double most = 1;
  for (const Json& child : ChildrenOf(node)) most = std::max(most, RowsOf(child));
  return most;
}

/// Rows, or pairs of rows, on which an operator evaluates its expressions.
double RowsInto(const Json& node) {
  const Json& children = ChildrenOf(node);
  if (children.empty()) return RowsOf(node);
  double rows = 1;
  for (const Json& child : children) rows *= RowsOf(child);
  return rows;
}

double LookupsBelow(const Json& node, const std::vector<std::string>& spellings) {
  double lookups = 0;
  const auto info = node.find("extra_info");
  const std::string text = info == node.end() ? "" : info->dump();
  for (const std::string& spelling : spellings) {
    for (std::size_t at = text.find(spelling); at != text.npos; at = text.find(spelling, at + 1)) {
      lookups += RowsInto(node);
    }
  }
  for (const Json& child : ChildrenOf(node)) lookups += LookupsBelow(child, spellings);
  return lookups;
}

}  // namespace

double EstimateLookups(relational::Connection& connection, const plan::AskOnDemandStep& step) {
  const auto rows = relational::QueryText(connection, "EXPLAIN (FORMAT json) " + step.sql,
                                          relational::ErrorPlaces::kNone);
  QUAIL_CHECK(!rows.empty() && !rows.back().empty());
  const Json plan = Json::parse(rows.back().back().value_or(""), nullptr, false);
  if (!plan.is_array() || plan.empty()) return 0;
  double lookups = 0;
  for (const plan::CallId call : step.calls) {
    const double found = LookupsBelow(plan[0], SpellingsOf(step, call));
    // Results with a name are shown by it: those have a lookup a row of the result.
    lookups += found > 0 ? found : RowsOf(plan[0]);
  }
  return lookups;
}

}  // namespace quail::session
