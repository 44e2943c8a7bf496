#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimizer/cost_model.h"
#include "optimizer/domain_query.h"
#include "optimizer/optimizer.h"
#include "plan/logical.h"
#include "plan/physical.h"

namespace quail::optimizer {

/// A plan between passes.
struct PlanDraft {
  /// Predicates about one relation's rows.
  struct Filters {
    plan::RelationId relation;
    std::vector<std::size_t> conjuncts;  ///< in the order of asking
  };
  /// Predicates about the pairs of two relations, with one anchor.
  struct Join {
    plan::RelationId anchor;
    plan::RelationId partner;
    std::vector<std::size_t> conjuncts;
  };
  /// How a call's anchor was chosen.
  struct Anchor {
    plan::RelationId relation;
    std::string reason;
  };

  PlanDraft(const plan::LogicalPlan& logical_in,
            std::span<const plan::ArgumentStatistics> statistics_in, const CostModel& cost_in,
            const OptimizerOptions& options_in)
      : logical(logical_in),
        statistics(statistics_in),
        cost(cost_in),
        options(options_in),
        query(logical_in) {}

  const plan::Call& CallOf(std::size_t conjunct) const {
    return logical.calls[logical.ai_conjuncts[conjunct].calls[0].call.value()];
  }
  /// Share of rows or pairs that a planned predicate lets pass, and where the figure is from.
  double PassRate(std::size_t conjunct) const;
  /// Of a call on demand.
  double PassRate(const plan::Call& call, bool negated) const;
  std::string PassRateSource(std::size_t conjunct) const;

  /// The texts that a call reads of one relation.
  TextSide SideOf(const plan::Call& call, plan::RelationId relation) const;
  double RowsOf(plan::RelationId relation) const;
  /// Pairs of the two sides that the conditions without AI calls leave, as distinct texts.
  double PairsOf(const plan::Call& call, plan::RelationId a, plan::RelationId b) const;
  /// The anchor of a call that reads two relations; chosen once.
  const Anchor& AnchorOf(const plan::Call& call);

  const plan::LogicalPlan& logical;
  std::span<const plan::ArgumentStatistics> statistics;
  const CostModel& cost;
  const OptimizerOptions& options;
  DomainQuery query;
  std::vector<Filters> filters;
  std::vector<Join> joins;
  std::vector<std::size_t> guarded;  ///< conjuncts that are no plain predicates
  std::map<std::uint32_t, Anchor> anchors;
  std::map<std::uint32_t, double> survivors;  ///< expected share of a relation's rows still alive
  plan::PhysicalPlan plan;
};

}  // namespace quail::optimizer
