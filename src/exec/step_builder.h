#pragma once

#include <memory>
#include <string>

#include "exec/operators/step_run.h"
#include "plan/physical.h"
#include "relational/connection.h"

namespace quail::exec {

/// Reads the domain of a step of the plan, as the relations' tables stand, and makes the operator
/// that asks it. Rows that an earlier filter step dropped are no part of it.
class StepBuilder {
 public:
  StepBuilder(const plan::PhysicalPlan& plan, relational::Connection& connection)
      : plan_(plan), connection_(connection) {}

  std::unique_ptr<StepRun> Build(const StepContext& context, std::size_t step) const;

 private:
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskFilterStep& step) const;
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskJoinStep& step) const;
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskColumnStep& step) const;

  const plan::Relation& relation(plan::RelationId id) const;
  /// The condition under which a row of the relation survived the filter steps before `step`.
  std::string Survival(plan::RelationId relation, std::size_t step) const;

  const plan::PhysicalPlan& plan_;
  relational::Connection& connection_;
};

/// "filter", the aliases and the anchor of a step, for reports. False for a relational step.
bool DescribeStep(const plan::PhysicalPlan& plan, std::size_t step, StepCounters& counters);

}  // namespace quail::exec
