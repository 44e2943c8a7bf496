#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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

/// What the reasons of asks that a budget left without an answer begin with.
inline constexpr std::string_view kBudgetReason = "budget: ";

/// Hands asks to another evaluator until the budget is used up; from then on every ask, also those
/// under way, fails with such a reason. Checked after each chunk.
class BudgetEvaluator : public Evaluator {
 public:
  /// `inner` outlives this.
  BudgetEvaluator(Evaluator& inner, const Budget& budget) : inner_(inner), budget_(budget) {}

  /// Asks that the budget left without an answer; of a join each pair is one.
  std::uint64_t refused() const { return refused_; }
  /// Which budget is used up; empty while none is.
  const std::string& reason() const { return reason_; }

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

  bool exhausted() const { return !reason_.empty(); }
  void Settle(const Outcome& outcome);
  void Check();
  void Refuse(std::vector<Outcome>& outcomes);

  Evaluator& inner_;
  Budget budget_;
  base::Stopwatch watch_;
  std::string reason_;
  std::uint64_t refused_ = 0;
  std::uint16_t last_step_ = 0;
  std::map<std::uint64_t, Open> open_;  ///< by tag, unique among the asks under way
};

}  // namespace quail::exec
