#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "exec/evaluator.h"
#include "exec/other_reads.h"
#include "exec/statement_verdicts.h"
#include "exec/step_counters.h"

namespace quail::exec {

/// What a running step uses of its statement.
struct StepContext {
  StatementVerdicts& verdicts;
  Evaluator& evaluator;
  std::span<const QuestionId>
      questions;  ///< the evaluator's, index = question of StatementVerdicts
  std::uint16_t step = 0;
  std::uint16_t place = 0;             ///< among the steps that run at once (Pipeline)
  const OtherReads* others = nullptr;  ///< null: nothing is known of other steps
};

/// A predicate of a step, with the columns of the step's domain that its call's arguments are.
struct Stage {
  plan::CallId call;
  bool negated = false;
  std::vector<std::size_t> columns;

  bool Survives(std::optional<bool> truth) const { return truth.has_value() && *truth != negated; }
};

/// One AI step while it runs: offers asks while the evaluator has room, takes their outcomes.
class StepRun {
 public:
  virtual ~StepRun() = default;
  /// Offers more asks; returns once the evaluator has no room or nothing is left to offer.
  virtual void Feed() = 0;
  virtual void Take(const Outcome& outcome) = 0;
  /// A tuple that survived the step before, which runs at the same time.
  virtual void Admit(std::span<const TextId> tuple);
  /// Nothing more is admitted.
  virtual void Close() {}
  /// Ends the step early: what was not judged is uncounted from `asked` and counted as unjudged.
  virtual void Stop() = 0;
  /// Rows or pairs that are known to survive.
  virtual std::uint64_t survivors() const = 0;
  /// Upper bound of the asks that are not answered.
  virtual std::uint64_t open_asks() const = 0;
  const StepCounters& counters() const { return counters_; }

  /// Admits what survives this step to `next`, which takes it while its KV is held.
  void PassTo(StepRun& next) { next_ = &next; }
  /// The place of the step whose ask the outcome answers.
  static std::size_t PlaceOf(const Outcome& outcome) { return outcome.tag >> kPlaceShift; }

 protected:
  explicit StepRun(const StepContext& context) : context_(context) {}

  /// A tag's lower bits belong to the operator.
  static constexpr unsigned kPlaceShift = 48;
  std::uint64_t Tag(std::uint64_t own) const {
    QUAIL_CHECK_EQ(own >> kPlaceShift, 0U);
    return own | (std::uint64_t{context_.place} << kPlaceShift);
  }
  static std::uint64_t OwnTag(std::uint64_t tag) {
    return tag & ((std::uint64_t{1} << kPlaceShift) - 1);
  }
  /// Later steps and stages first: they read KV that is held.
  std::int32_t Priority(std::size_t stage) const {
    return std::int32_t{context_.place} * 256 +
           static_cast<std::int32_t>(std::min<std::size_t>(stage, 255));
  }

  /// Stores an outcome in the stage's table and counts the evaluation.
  void Record(const Stage& stage, std::span<const TextId> key, const Outcome& outcome);
  VerdictTable& table(const Stage& stage) const {
    return context_.verdicts.table(context_.verdicts.question_of(stage.call));
  }
  QuestionId question(const Stage& stage) const {
    return context_.questions[context_.verdicts.question_of(stage.call)];
  }
  /// How likely a later step reads a document of this one again.
  double LaterChance(std::span<const TextId> document) const {
    return context_.others == nullptr ? 0 : context_.others->ChanceOf(document);
  }
  /// Counts the rows that have no verdict because a key's evaluation failed.
  void CountFailure(const Stage& stage, std::span<const TextId> key, std::uint64_t rows);

  StepContext context_;
  StepCounters counters_;
  StepRun* next_ = nullptr;
};

}  // namespace quail::exec
