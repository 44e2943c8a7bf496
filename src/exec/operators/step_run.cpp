#include "exec/operators/step_run.h"

#include "base/check.h"

namespace quail::exec {

void StepRun::Admit(std::span<const TextId>) {
  QUAIL_CHECK_MSG(false, "a step that admits nothing");
}

void StepRun::Record(const Stage& stage, std::span<const TextId> key, const Outcome& outcome) {
  table(stage).Set(key, outcome.verdict, outcome.margin, outcome.reason);
  ++counters_.distinct;
  switch (outcome.verdict) {
    case Verdict::kTrue:
    case Verdict::kFalse: {
      const auto truth =
          context_.verdicts.Truth(stage.call, Judgement{outcome.verdict, outcome.margin, 0});
      ++(*truth ? counters_.yes : counters_.no);
      break;
    }
    case Verdict::kNull:
      ++counters_.null;
      break;
    case Verdict::kError:
      ++counters_.error;
      break;
    case Verdict::kUndecided:
      QUAIL_CHECK_MSG(false, "an outcome without a verdict");
  }
}

void StepRun::CountFailure(const Stage& stage, std::span<const TextId> key, std::uint64_t rows) {
  VerdictTable& verdicts = table(stage);
  const std::string& reason = verdicts.reasons()[verdicts.Find(key).reason];
  counters_.error_rows[reason] += rows;
  counters_.error_calls[reason].insert(stage.call.value());
  verdicts.CountFailedRows(key, rows);
}

}  // namespace quail::exec
