#include "optimizer/optimizer.h"

#include "optimizer/passes.h"
#include "optimizer/plan_draft.h"
#include "optimizer/verify.h"

namespace quail::optimizer {

plan::PhysicalPlan Optimize(const plan::LogicalPlan& logical,
                            std::span<const plan::ArgumentStatistics> statistics,
                            const spec::ModelSpec& model, const spec::DeviceSpec& device,
                            const OptimizerOptions& options) {
  const CostModel cost(model, device, options.count_tokens, options.prompt_tokens, options.turns);
  PlanDraft draft(logical, statistics, cost, options);
  draft.plan.relations = logical.relations;
  draft.plan.reduction_sql = logical.reduction_sql;
  draft.plan.calls = logical.calls;
  draft.plan.case_calls = logical.case_calls;
  draft.plan.final_sql = logical.final_sql;
  if (logical.repeatable) draft.plan.repeatable_sql = logical.rows_sql;
  draft.plan.cleanup_sql = logical.cleanup_sql;
  draft.plan.notices = logical.notices;
  for (const Pass& pass : Passes()) pass.run(draft);
  Verify(logical, draft.plan);
  return std::move(draft.plan);
}

}  // namespace quail::optimizer
