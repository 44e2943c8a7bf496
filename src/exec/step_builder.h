#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/operators/step_run.h"
#include "exec/pipeline.h"
#include "plan/physical.h"
#include "relational/connection.h"

namespace quail::exec {

/// Reads the domains of the steps of a pipeline, as the relations' tables stand, and makes the
/// operators that ask them. Rows that a filter step before the pipeline dropped are no part of it.
class StepBuilder {
 public:
  StepBuilder(const plan::PhysicalPlan& plan, relational::Connection& connection,
              const Pipeline& pipeline)
      : plan_(plan), connection_(connection), pipeline_(pipeline) {}

  /// REQUIRES: context.place is the place of a step in `pipeline.asking`.
  std::unique_ptr<StepRun> Build(const StepContext& context) const;

 private:
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskFilterStep& step) const;
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskJoinStep& step) const;
  std::unique_ptr<StepRun> Build(const StepContext& context, const plan::AskColumnStep& step) const;

  const plan::Relation& relation(plan::RelationId id) const;
  /// The condition under which a row of the relation survived the filter steps before the pipeline.
  std::string Survival(plan::RelationId id) const;
  /// The columns of a join's anchors that are what the step before lets survive.
  std::vector<std::size_t> AdmittedBy(std::size_t place,
                                      const std::vector<std::string>& anchor_columns) const;

  const plan::PhysicalPlan& plan_;
  relational::Connection& connection_;
  const Pipeline& pipeline_;
};

/// What reports call a step that asks: its place, kind, aliases and anchor; the counts are 0.
StepCounters DescribeStep(const plan::PhysicalPlan& plan, std::size_t step);

}  // namespace quail::exec
