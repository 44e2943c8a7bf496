#include "optimizer/verify.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace quail::optimizer {

using plan::PhysicalPlan;

namespace {

struct Uses {
  std::map<std::pair<std::uint32_t, bool>, std::size_t> predicates;  ///< (call, negated)
  std::map<std::uint32_t, std::size_t> columns;
  std::vector<plan::CallId> on_demand;
};

void CheckCall(const PhysicalPlan& plan, plan::CallId id) {
  QUAIL_CHECK_LT(id.value(), plan.calls.size());
  for (const plan::Argument& argument : plan.calls[id.value()].arguments) {
    if (argument.id_column.empty()) continue;
    QUAIL_CHECK_LT(argument.relation.value(), plan.relations.size());
    const auto& columns = plan.relations[argument.relation.value()].id_columns;
    QUAIL_CHECK(std::find(columns.begin(), columns.end(), argument.id_column) != columns.end());
  }
}

void CheckFeeds(const PhysicalPlan& plan, std::size_t index) {
  const auto* filter = std::get_if<plan::AskFilterStep>(&plan.steps[index]);
  if (filter == nullptr || !filter->feeds) return;
  QUAIL_CHECK_GT(*filter->feeds, index);
  QUAIL_CHECK_LT(*filter->feeds, plan.steps.size());
  const auto* join = std::get_if<plan::AskJoinStep>(&plan.steps[*filter->feeds]);
  QUAIL_CHECK(join != nullptr && join->anchor == filter->relation);
}

Uses CollectUses(const PhysicalPlan& plan) {
  Uses uses;
  const auto add = [&](const std::vector<plan::Predicate>& predicates) {
    QUAIL_CHECK(!predicates.empty());
    for (const plan::Predicate& predicate : predicates) {
      CheckCall(plan, predicate.call);
      ++uses.predicates[{predicate.call.value(), predicate.negated}];
    }
  };
  for (const plan::Step& step : plan.steps) {
    if (const auto* filter = std::get_if<plan::AskFilterStep>(&step)) add(filter->predicates);
    if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) {
      QUAIL_CHECK(join->anchor != join->partner);
      add(join->stages);
    }
    if (const auto* column = std::get_if<plan::AskColumnStep>(&step)) {
      CheckCall(plan, column->call);
      QUAIL_CHECK(!column->domain_sql.empty());
      ++uses.columns[column->call.value()];
    }
    if (const auto* on_demand = std::get_if<plan::AskOnDemandStep>(&step)) {
      QUAIL_CHECK(uses.on_demand.empty() && !on_demand->sql.empty());
      uses.on_demand = on_demand->calls;
    }
  }
  return uses;
}

}  // namespace

void Verify(const plan::LogicalPlan& logical, const PhysicalPlan& plan) {
  QUAIL_CHECK_EQ(plan.steps.size(), plan.estimates.size());
  for (std::size_t i = 0; i < plan.calls.size(); ++i) QUAIL_CHECK_EQ(plan.calls[i].id.value(), i);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) CheckFeeds(plan, i);
  const Uses uses = CollectUses(plan);
  std::map<std::pair<std::uint32_t, bool>, std::size_t> predicates;
  std::map<std::uint32_t, std::size_t> columns;
  const auto add_column = [&](plan::CallId id) {
    if (plan.calls[id.value()].kind != plan::CallKind::kCountTokens) ++columns[id.value()];
  };
  for (const plan::AiConjunct& conjunct : logical.ai_conjuncts) {
    const auto& call = plan.calls[conjunct.calls.at(0).call.value()];
    const std::size_t relations = conjunct.relations.size();
    if (conjunct.is_call && relations >= 1 && relations <= 2 && !call.arguments.empty()) {
      ++predicates[{call.id.value(), conjunct.negated}];
    } else {
      for (const auto& guarded : conjunct.calls) add_column(guarded.call);
    }
  }
  for (const plan::ComputedCall& computed : logical.computed) add_column(computed.call);
  QUAIL_CHECK(uses.predicates == predicates);
  QUAIL_CHECK(uses.columns == columns);
  std::vector<plan::CallId> on_demand;
  for (const plan::Call& call : plan.calls) {
    if (call.on_demand) on_demand.push_back(call.id);
  }
  QUAIL_CHECK(uses.on_demand == on_demand);
}

}  // namespace quail::optimizer
