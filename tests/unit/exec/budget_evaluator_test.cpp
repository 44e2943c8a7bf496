#include "exec/budget_evaluator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exec/function_evaluator.h"

namespace quail::exec {
namespace {

constexpr std::uint64_t kTokensOfAnAsk = 60;

/// Every ask takes as many tokens, and the answer is yes.
class CountingEvaluator : public FunctionEvaluator {
 public:
  explicit CountingEvaluator(const text::TextStore& texts)
      : FunctionEvaluator(
            [](auto, auto) {
              return PlantedAnswer{Verdict::kTrue, 1, ""};
            },
            texts) {}

  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override {
    const std::size_t before = outcomes.size();
    const bool any = FunctionEvaluator::Next(outcomes, cancel);
    fresh_ += kTokensOfAnAsk * (outcomes.size() - before);
    return any;
  }
  bool counts_tokens() const override { return true; }
  TokenCounters tokens(std::uint16_t) const override { return {.fresh = fresh_}; }

 private:
  std::uint64_t fresh_ = 0;
};

class BudgetEvaluatorTest : public testing::Test {
 protected:
  BudgetEvaluatorTest() {
    limited_.Begin();
    question_ = limited_.Add({"{0}", 1, {}, plan::OnLong::kError});
  }

  std::vector<Outcome> Ask(const std::string& text) {
    const std::vector<TextId> key = {texts_.Intern(text)};
    limited_.Ask(FilterAsk{.question = question_, .key = key, .tag = 1});
    std::vector<Outcome> outcomes;
    while (limited_.Next(outcomes, nullptr)) {
    }
    return outcomes;
  }

  text::TextStore texts_;
  CountingEvaluator model_{texts_};
  BudgetEvaluator limited_{model_, Budget{kTokensOfAnAsk, std::nullopt}};
  QuestionId question_;
};

TEST_F(BudgetEvaluatorTest, WhatIsUsedUpByTheLastAnswerLeavesNothing) {
  const auto outcomes = Ask("a");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].verdict, Verdict::kTrue);
  EXPECT_EQ(limited_.refused(), 0U);
}

TEST_F(BudgetEvaluatorTest, RefusesWhatComesAfterAndCountsIt) {
  Ask("a");
  const auto outcomes = Ask("b");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].reason, "budget: quail_max_tokens is 60");
  EXPECT_EQ(limited_.refused(), 1U);
  EXPECT_EQ(limited_.reason(), outcomes[0].reason);
}

}  // namespace
}  // namespace quail::exec
