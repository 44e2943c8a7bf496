#include "session/argument_statistics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quail::session {
namespace {

TEST(ArgumentStatistics, TextsThatNobodyCountedAreEstimatedByTheirBytes) {
  text::TextStore texts;
  const std::vector<text::TokenId> tokens(7);
  exec::Domain domain{
      1,
      {texts.InternTokens(tokens), exec::kNullText, texts.Intern(std::string(12, 'x'))},
      {2, 3, 1}};
  EXPECT_EQ(TextsOf(domain), (std::vector<base::TextId>{domain.ids[0], domain.ids[2]}));
  const plan::ArgumentStatistics both = StatisticsOf(domain, texts);
  EXPECT_EQ(both.rows, 6U);
  EXPECT_EQ(both.nulls, 3U);
  EXPECT_EQ(both.distinct, 2U);
  EXPECT_DOUBLE_EQ(both.sum_tokens, 10);
  EXPECT_DOUBLE_EQ(both.sum_squared_tokens, 58);
  EXPECT_DOUBLE_EQ(both.mean_tokens, 5);
  EXPECT_EQ(both.max_tokens, 7U);
  EXPECT_TRUE(both.estimated);
  domain.ids[2] = exec::kNullText;
  EXPECT_FALSE(StatisticsOf(domain, texts).estimated);
}

TEST(ArgumentStatistics, NullAloneHasNoTexts) {
  const exec::Domain domain{1, {exec::kNullText}, {4}};
  const plan::ArgumentStatistics none = StatisticsOf(domain, text::TextStore());
  EXPECT_EQ(none.nulls, 4U);
  EXPECT_EQ(none.distinct, 0U);
  EXPECT_EQ(none.mean_tokens, 0);
}

}  // namespace
}  // namespace quail::session
