#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exec/evaluator.h"

namespace quail::exec {

/// What a statement may use at most.
struct Budget {
  std::optional<std::uint64_t> tokens;  ///< fresh tokens
  std::optional<double> seconds;        ///< since the first step began

  bool limited() const { return tokens.has_value() || seconds.has_value(); }
};

/// Hands asks to another evaluator until the budget is used up; from then on every ask, also those
/// under way, fails with a reason that begins with "budget". Checked after each chunk.
class BudgetEvaluator : public Evaluator {
 public:
  /// `inner` outlives this.
  BudgetEvaluator(Evaluator& inner, const Budget& budget) : inner_(inner), budget_(budget) {}

  /// Whether the budget ended the work.
  bool exhausted() const { return !reason_.empty(); }

  void Begin() override;
  QuestionId Add(const Question& question) override { return inner_.Add(question); }
  void Ask(const FilterAsk& ask) override;
  void Ask(const JoinAsk& ask) override;
  void Expect(QuestionId question, std::span<const TextId> document_key, double p) override;
  std::size_t room() const override;
  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override;
  void Withdraw() override;
  bool counts_tokens() const override { return inner_.counts_tokens(); }
  TokenCounters tokens(std::uint16_t step) const override { return inner_.tokens(step); }

 private:
  /// Asks of one tag that have no answer.
  struct Open {
    std::vector<bool> answered;  ///< by partner of the list; one for a filter
    std::size_t left = 0;
  };

  void Settle(const Outcome& outcome);
  void Check();
  void Refuse(std::vector<Outcome>& outcomes);

  Evaluator& inner_;
  Budget budget_;
  base::Stopwatch watch_;
  std::string reason_;
  std::uint16_t last_step_ = 0;
  std::map<std::uint64_t, Open> open_;  ///< by tag, unique among the asks under way
};

}  // namespace quail::exec
