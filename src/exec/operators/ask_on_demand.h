#pragma once

#include <memory>
#include <set>
#include <vector>

#include "exec/on_demand.h"
#include "exec/operators/step_run.h"

namespace quail::exec {

/// Asks what a pass of the engine over a statement found undecided, call by call
/// (plan::AskOnDemandStep).
class AskOnDemand : public StepRun {
 public:
  explicit AskOnDemand(const StepContext& context) : StepRun(context) {
    counters_.kind = "on demand";
  }

  /// Begins to ask undecided tuples of a call; Feed and Take are then about them.
  void Begin(plan::CallId call, const std::set<std::vector<TextId>>& tuples);
  /// The call's tuples are decided.
  void End();
  /// The last pass read decided verdicts only: its lookups are the values that were needed.
  void CountReads(plan::CallId call, const OnDemandReads::Reads& reads);
  /// Lookups of early stops that needed no verdict.
  void CountUnjudged(std::uint64_t lookups) { counters_.unjudged += lookups; }

  void Feed() override;
  void Take(const Outcome& outcome) override;
  void Close() override {
    if (run_ != nullptr) run_->Close();
  }
  void Stop() override;
  std::uint64_t survivors() const override { return 0; }
  std::uint64_t open_asks() const override;

 private:
  std::unique_ptr<StepRun> run_;  ///< of the call that is asked
};

}  // namespace quail::exec
