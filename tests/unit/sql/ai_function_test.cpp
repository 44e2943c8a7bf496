#include "sql/ai_function.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quail::sql {
namespace {

TEST(AiFunction, EverySpellingFindsItsRow) {
  EXPECT_EQ(FindAiFunction("ai.if"), FindAiFunction("AI_FILTER"));
  EXPECT_EQ(FindAiFunction("AI_IF"), FindAiFunction("Ai_Filter"));
  EXPECT_EQ(FindAiFunction("AI.PROB")->readout, Readout::kProbability);
  EXPECT_EQ(FindAiFunction("AI.IFF"), nullptr);
  EXPECT_EQ(FindAiFunction("FILTER"), nullptr);
}

TEST(AiFunction, TheTableIsSortedAndComplete) {
  const auto functions = AiFunctions();
  EXPECT_TRUE(std::is_sorted(functions.begin(), functions.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const AiFunction& function : functions) {
    EXPECT_FALSE(function.snowflake.empty() && function.bigquery.empty()) << function.name;
    EXPECT_FALSE(function.summary.empty()) << function.name;
    EXPECT_FALSE(function.result_type.empty()) << function.name;
    EXPECT_EQ(function.implemented(), !function.example.empty()) << function.name;
    EXPECT_EQ(function.implemented(), function.prompt != PromptShape::kOther) << function.name;
  }
}

TEST(AiFunction, TheSupportedListNamesBothSpellings) {
  EXPECT_EQ(SupportedAiFunctions(),
            "AI_COUNT_TOKENS (AI.COUNT_TOKENS), AI_FILTER (AI.IF), AI_PROB (AI.PROB)");
}

}  // namespace
}  // namespace quail::sql
