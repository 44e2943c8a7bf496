#include "quailb/published_count.h"

#include <gtest/gtest.h>

#include <array>

#include "quail/error.h"
#include "quailb/suite_files.h"

namespace quail::quailb {
namespace {

/// The suite at scale 0.1 for one seed, made once.
struct Suite {
  explicit Suite(std::uint64_t seed)
      : corpus(MakeCorpus(seed, Scale::k01)),
        data(MakeSuiteData(corpus)),
        flow(PlantFlow4b(corpus)),
        hints(ReadHints(HintsText())) {}

  TokenCount Count(std::string_view query, PromptLayout layout = PromptLayout::kPublished) const {
    return CountTokens(FindQuery(query), data, flow, hints, layout);
  }

  Corpus corpus;
  SuiteData data;
  Answers flow;
  Hints hints;
};

const Suite& SuiteOf(std::uint64_t seed) {
  static const Suite first(1);
  static const Suite other(20'261'129);
  return seed == 1 ? first : other;
}

class PublishedCount : public testing::TestWithParam<std::uint64_t> {
 protected:
  const Suite& suite() const { return SuiteOf(GetParam()); }
};

struct ExactCount {
  std::string_view query;
  std::uint64_t fresh;
};

TEST_P(PublishedCount, TheKnownCountsAreMetWithinOneInTenThousand) {
  for (const auto& [query, fresh] : std::initializer_list<ExactCount>{{"IMDB-1", 1'759'232},
                                                                      {"IMDB-2", 2'419'232},
                                                                      {"IMDB-6", 1'774'145},
                                                                      {"BIO-2", 10'374'345},
                                                                      {"FEV-2", 3'245'254},
                                                                      {"LEP-2", 15'098'947},
                                                                      {"AGENT-1", 5'502'961}}) {
    const auto published = static_cast<double>(fresh);
    EXPECT_NEAR(static_cast<double>(suite().Count(query).fresh), published, published * 1e-4)
        << query;
  }
  EXPECT_NEAR(static_cast<double>(suite().Count("AGENT-1").unshared), 17'389'113, 1739);
}

TEST_P(PublishedCount, TheLabelKeptWithTheAnchorSavesSixTokensAPair) {
  EXPECT_EQ(suite().Count("BIO-2", PromptLayout::kOwn).fresh, 6'996'345U);
}

/// Calls and tokens (millions) as the published table prints them.
struct PrintedCount {
  std::string_view query;
  std::uint64_t calls;
  double requested;
  double fresh;
  double last_digit;  ///< of `fresh`, in millions
};

// Filter queries and single joins. Requested tokens are 0, not compared, where the printed number
// contradicts the published row counts and totals (FEV-2 71.6, BIO-2 2,325, LEP-1 0.14: they give
// 71.49, 2,323.0 and 0.132) and for FEV-10, where it depends on which pages the 185 pairs have.
constexpr std::array kPrinted = {
    PrintedCount{"IMDB-1", 5'000, 1.76, 1.76, 0.01},
    PrintedCount{"IMDB-2", 60'000, 20.9, 2.42, 0.01},
    PrintedCount{"IMDB-3", 57'560, 20.6, 2.56, 0.01},
    PrintedCount{"IMDB-4", 21'445, 9.1, 2.00, 0.01},
    PrintedCount{"IMDB-5", 15'848, 7.1, 1.93, 0.01},
    PrintedCount{"IMDB-6", 6'361, 2.3, 1.77, 0.01},
    PrintedCount{"IMDB-7", 7'124, 2.7, 1.80, 0.01},
    PrintedCount{"BIO-1", 500, 2.06, 2.06, 0.01},
    PrintedCount{"BIO-2", 563'500, 0, 10.4, 0.1},
    PrintedCount{"BIO-3", 424'252, 1750, 8.3, 0.1},
    PrintedCount{"FEV-1", 500, 0.03, 0.03, 0.01},
    PrintedCount{"FEV-2", 143'500, 0, 3.25, 0.01},
    PrintedCount{"FEV-3", 104'107, 51.6, 2.40, 0.01},
    PrintedCount{"FEV-4", 14'100, 6.8, 0.53, 0.01},
    PrintedCount{"FEV-5", 62'518, 30.3, 1.52, 0.01},
    PrintedCount{"FEV-6", 8'935, 4.1, 0.40, 0.01},
    PrintedCount{"FEV-10", 972, 0, 0.19, 0.01},
    PrintedCount{"LEP-1", 500, 0, 0.13, 0.01},
    PrintedCount{"LEP-2", 216'500, 68.4, 15.1, 0.1},
    PrintedCount{"LEP-3", 154'648, 47.6, 10.8, 0.1},
    PrintedCount{"LEP-4", 65'806, 16.2, 4.64, 0.01},
    PrintedCount{"LEP-5", 64'289, 15.8, 4.56, 0.01},
    PrintedCount{"AGENT-2", 1'772, 17.4, 5.55, 0.01},
};

double Millions(std::uint64_t tokens) { return static_cast<double>(tokens) / 1e6; }

TEST_P(PublishedCount, FiltersAndSingleJoinsAgreeToThePrintedDigits) {
  for (const PrintedCount& printed : kPrinted) {
    const TokenCount count = suite().Count(printed.query);
    EXPECT_EQ(count.calls, printed.calls) << printed.query;
    EXPECT_NEAR(Millions(count.fresh), printed.fresh, printed.last_digit * 0.501) << printed.query;
    if (printed.requested == 0) continue;
    const double digit = printed.requested >= 100 ? 1 : printed.requested >= 2.07 ? 0.1 : 0.01;
    EXPECT_NEAR(Millions(count.requested), printed.requested, digit * 0.501) << printed.query;
  }
}

TEST_P(PublishedCount, StarsAndChainsAgreeWhereTheirOrderIsTheWrittenOne) {
  EXPECT_EQ(suite().Count("IMDB-8").calls, 91'788U);
  EXPECT_EQ(suite().Count("IMDB-9").calls, 151'788U);
  EXPECT_EQ(suite().Count("FEV-7").calls, 268'919U);
  EXPECT_NEAR(Millions(suite().Count("FEV-7").fresh), 6.10, 0.005);
  EXPECT_EQ(suite().Count("BIO-4").calls, 243'770U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PublishedCount, testing::Values(1, 20'261'129));

TEST(CountDistinctPrefixes, CountsTheNodesOfTheTrie) {
  const std::vector<std::vector<std::int32_t>> documents = {
      {1, 2, 3}, {1, 2}, {1, 2, 3}, {4}, {1, 5, 3}};
  EXPECT_EQ(CountDistinctPrefixes(documents, {true, true, true, true, true}), 6U);
  EXPECT_EQ(CountDistinctPrefixes(documents, {false, true, false, true, false}), 3U);
  EXPECT_EQ(CountDistinctPrefixes(documents, {false, false, false, false, false}), 0U);
}

TEST(CountTokens, SaysWhichHintIsMissing) {
  Hints hints = ReadHints(HintsText());
  hints.erase("F4");
  const Suite& suite = SuiteOf(1);
  EXPECT_THROW(
      CountTokens(FindQuery("IMDB-6"), suite.data, suite.flow, hints, PromptLayout::kPublished),
      Error);
}

}  // namespace
}  // namespace quail::quailb
