#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/evaluator.h"
#include "exec/verdicts.h"
#include "plan/physical.h"

namespace quail::exec {

/// The verdicts of a statement. Calls that put the same question (same template, layout and
/// options, whatever they return and whichever alias they read) share one table, so each distinct
/// tuple is evaluated once.
class StatementVerdicts {
 public:
  explicit StatementVerdicts(const plan::PhysicalPlan& plan);

  std::size_t questions() const { return questions_.size(); }
  std::size_t question_of(plan::CallId call) const { return question_of_.at(call.value()); }
  const Question& question(std::size_t i) const { return questions_[i]; }
  VerdictTable& table(std::size_t question) { return tables_[question]; }
  const VerdictTable& table(std::size_t question) const { return tables_[question]; }
  std::size_t calls() const { return calls_.size(); }
  const plan::Call& call(plan::CallId id) const { return calls_.at(id.value()); }

  /// What the call returns: applies its threshold. NULL where there is no verdict, for whatever
  /// reason.
  std::optional<bool> Truth(plan::CallId call, const Judgement& judgement) const;
  std::optional<bool> Truth(plan::CallId call, std::span<const TextId> key) const;
  /// Whether the tuple was evaluated, or needs no evaluation.
  bool IsDecided(plan::CallId call, std::span<const TextId> key) const {
    return HasNull(key) || Find(call, key).verdict != Verdict::kUndecided;
  }
  std::optional<double> Probability(plan::CallId call, std::span<const TextId> key) const;
  /// The reason why the evaluation failed, if it did.
  std::optional<std::string> Failure(plan::CallId call, std::span<const TextId> key) const;

 private:
  Judgement Find(plan::CallId call, std::span<const TextId> key) const;

  std::vector<plan::Call> calls_;
  std::vector<std::size_t> question_of_;
  std::vector<Question> questions_;
  std::vector<VerdictTable> tables_;
};

}  // namespace quail::exec
