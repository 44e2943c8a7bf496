#include "exec/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace quail::exec {
namespace {

using plan::AskFilterStep;
using plan::AskJoinStep;
using plan::PhysicalPlan;
using plan::RelationalStep;
using plan::RelationId;

bool Contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != list.end();
}

/// Tuples of one relation that a step lets survive one by one.
struct Survivors {
  RelationId relation;
  std::vector<std::string> columns;
};

std::optional<Survivors> SurvivorsOf(const PhysicalPlan& plan, const plan::Step& step) {
  if (const auto* filter = std::get_if<AskFilterStep>(&step)) {
    return Survivors{filter->relation, ColumnsOf(plan, filter->relation, filter->predicates)};
  }
  // Pairs that SQL selects are known only when all verdicts before are.
  if (const auto* join = std::get_if<AskJoinStep>(&step); join && join->pairs_sql.empty()) {
    return Survivors{join->anchor, ColumnsOf(plan, join->anchor, join->stages)};
  }
  return std::nullopt;
}

/// Whether an anchor of `join` says which of the survivors it belongs to.
bool TakesAnchors(const PhysicalPlan& plan, const AskJoinStep& join, const Survivors& survivors) {
  if (join.anchor != survivors.relation || !join.pairs_sql.empty()) return false;
  const auto own = ColumnsOf(plan, join.anchor, join.stages);
  return std::ranges::all_of(survivors.columns,
                             [&](const std::string& column) { return Contains(own, column); });
}

}  // namespace

std::vector<std::string> ColumnsOf(const PhysicalPlan& plan, RelationId relation,
                                   const std::vector<plan::Predicate>& predicates) {
  std::vector<std::string> columns;
  for (const plan::Predicate& predicate : predicates) {
    for (const plan::Argument& argument : plan.calls[predicate.call.value()].arguments) {
      if (argument.relation != relation || Contains(columns, argument.id_column)) continue;
      columns.push_back(argument.id_column);
    }
  }
  return columns;
}

Pipeline PipelineAt(const PhysicalPlan& plan, std::size_t first) {
  Pipeline pipeline;
  pipeline.end = first + 1;
  const bool asks = !std::holds_alternative<RelationalStep>(plan.steps[first]);
  (asks ? pipeline.asking : pipeline.relational).push_back(first);
  auto survivors = SurvivorsOf(plan, plan.steps[first]);
  std::vector<std::size_t> between;  // relational steps since the last step that asks
  std::vector<RelationId> stale;     // relations that still hold rows which those steps delete
  for (std::size_t i = first + 1; survivors && i < plan.steps.size(); ++i) {
    if (const auto* relational = std::get_if<RelationalStep>(&plan.steps[i])) {
      if (!relational->keeps_matched) break;
      between.push_back(i);
      stale.push_back(*relational->keeps_matched);
      continue;
    }
    const auto* join = std::get_if<AskJoinStep>(&plan.steps[i]);
    if (join == nullptr || !TakesAnchors(plan, *join, *survivors)) break;
    if (Contains(stale, join->partner)) break;
    pipeline.asking.push_back(i);
    pipeline.relational.insert(pipeline.relational.end(), between.begin(), between.end());
    between.clear();
    pipeline.end = i + 1;
    survivors = SurvivorsOf(plan, plan.steps[i]);
  }
  return pipeline;
}

}  // namespace quail::exec
