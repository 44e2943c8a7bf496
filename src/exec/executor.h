#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "exec/evaluator.h"
#include "exec/lookup_functions.h"
#include "exec/other_reads.h"
#include "exec/pipeline.h"
#include "exec/statement_verdicts.h"
#include "exec/step_counters.h"
#include "plan/physical.h"
#include "quail/config.h"
#include "relational/connection.h"

namespace quail::exec {

struct ExecutorOptions {
  const base::CancelFlag* cancel = nullptr;
  bool fail_on_error = false;  ///< quail_on_error = 'fail'
  std::function<void(const Progress&)> on_progress;
  std::function<void(const std::string&)> on_notice;
  /// Of the connection's lookups; needed where a plan has calls on demand.
  LookupSource* lookups = nullptr;
  /// Most pairs that a statement asks about, and those of its planned calls: what is asked on
  /// demand about two texts or more counts on top.
  std::uint64_t max_pairs = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t planned_pairs = 0;
};

/// Runs the steps of a plan whose relations exist, in order, those of a pipeline at once: the
/// verdicts are then all decided that the rows of the final SQL depend on. Counters are right at
/// any time, also when a step threw.
class Executor {
 public:
  Executor(relational::Connection& connection, Evaluator& evaluator, StatementVerdicts& verdicts,
           ExecutorOptions options);

  /// Throws Error{kInterrupted | kQuery ..}.
  void Run(const plan::PhysicalPlan& plan);
  /// SQL that takes away what an error of Run left with the engine; empty where it left nothing.
  std::string_view tidy_up_sql() const { return tidy_up_sql_; }

  /// Whether LIMIT left rows unjudged.
  bool stopped_early() const { return stopped_early_; }

  /// One a step that asks; tokens included, and `seconds` from its begin to its end, in which the
  /// other steps of its pipeline ran too.
  const std::vector<StepCounters>& steps() const { return steps_; }

 private:
  class PipelineRun;

  void RunPipeline(const plan::PhysicalPlan& plan, const Pipeline& pipeline);
  void RunOnDemand(const plan::PhysicalPlan& plan, const Pipeline& pipeline);
  bool AskUndecided(const plan::AskOnDemandStep& step, const OnDemandReads& reads,
                    std::vector<std::uint32_t>& waves, PipelineRun& run);
  bool AskUntilMet(const plan::EarlyStop& stop, const OnDemandReads::StopRows& rows,
                   PipelineRun& run);
  void CountPairs(plan::CallId id, std::size_t tuples);
  void CheckErrors(const plan::PhysicalPlan& plan, const Pipeline& pipeline) const;
  void CheckErrors(const plan::PhysicalPlan& plan, const plan::Step& step) const;

  relational::Connection& connection_;
  Evaluator& evaluator_;
  StatementVerdicts& verdicts_;
  ExecutorOptions options_;
  ColumnTexts texts_;
  std::vector<QuestionId> questions_;
  std::vector<StepCounters> steps_;
  std::uint64_t pairs_on_demand_ = 0;
  bool stopped_early_ = false;
  std::string_view tidy_up_sql_;
};

}  // namespace quail::exec
