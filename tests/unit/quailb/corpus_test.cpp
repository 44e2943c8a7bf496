#include "quailb/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "quail/error.h"

namespace quail::quailb {
namespace {

constexpr std::uint64_t kSeed = 3;

std::uint64_t TotalOf(const Corpus& corpus, Table table) {
  const auto& lengths = corpus.lengths_of(table);
  return std::accumulate(lengths.begin(), lengths.begin() + corpus.rows(table), std::uint64_t{0});
}

std::uint32_t Quantile(std::vector<std::uint32_t> lengths, double share) {
  std::sort(lengths.begin(), lengths.end());
  return lengths[static_cast<std::size_t>(share * static_cast<double>(lengths.size()))];
}

TEST(Corpus, HasThePublishedTotalsAtScale01) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k01);
  EXPECT_EQ(TotalOf(corpus, Table::kReviews), 1'494'232U);
  EXPECT_EQ(TotalOf(corpus, Table::kAspects), 27U);
  EXPECT_EQ(TotalOf(corpus, Table::kReports), 2'031'845U);
  EXPECT_EQ(TotalOf(corpus, Table::kTerms), 5'371U);
  EXPECT_EQ(TotalOf(corpus, Table::kClaims), 5'831U);
  EXPECT_EQ(TotalOf(corpus, Table::kEvidence), 125'851U);
  EXPECT_EQ(TotalOf(corpus, Table::kContexts), 103'947U);
  EXPECT_EQ(TotalOf(corpus, Table::kPassages), 25'621U);
  EXPECT_EQ(TotalOf(corpus, Table::kTraces), 17'252'669U);
}

TEST(Corpus, HasTheAssumedShapes) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k01);
  EXPECT_NEAR(Quantile(corpus.lengths_of(Table::kReviews), 0.5), 230, 15);
  EXPECT_NEAR(Quantile(corpus.lengths_of(Table::kReports), 0.05), 320, 120);
  EXPECT_LE(Quantile(corpus.lengths_of(Table::kTerms), 0.999), 16U);
  EXPECT_NEAR(Quantile(corpus.lengths_of(Table::kTraces), 0.5), 8'880, 890);
  EXPECT_NEAR(Quantile(corpus.lengths_of(Table::kTraces), 0.9), 17'988, 1'800);
  EXPECT_LE(Quantile(corpus.lengths_of(Table::kTraces), 0.9999), 24'000U);
}

TEST(Corpus, OfASmallerScaleIsAPrefix) {
  const Corpus small = MakeCorpus(kSeed, Scale::k001);
  const Corpus middle = MakeCorpus(kSeed, Scale::k01);
  const Corpus large = MakeCorpus(kSeed, Scale::k1);
  for (std::size_t i = 0; i < kTableCount; ++i) {
    const auto table = static_cast<Table>(i);
    const auto& lengths = middle.lengths_of(table);
    EXPECT_TRUE(std::equal(lengths.begin(), lengths.end(), large.lengths_of(table).begin()))
        << InfoOf(table).name;
    for (std::uint32_t row = 0; row < small.rows(table); row += 7) {
      EXPECT_EQ(DocumentIds(small, table, row), DocumentIds(large, table, row));
    }
  }
}

TEST(Corpus, DependsOnTheSeed) {
  const Corpus a = MakeCorpus(1, Scale::k001);
  const Corpus b = MakeCorpus(2, Scale::k001);
  EXPECT_NE(a.lengths_of(Table::kReviews), b.lengths_of(Table::kReviews));
  EXPECT_NE(DocumentIds(a, Table::kAspects, 0), DocumentIds(b, Table::kAspects, 0));
}

TEST(Corpus, LinksStayInsideEachScale) {
  for (const Scale scale : {Scale::k001, Scale::k01, Scale::k05, Scale::k1}) {
    const Corpus corpus = MakeCorpus(kSeed, scale);
    const std::uint32_t claims = corpus.rows(Table::kClaims);
    const std::set<std::uint32_t> pages(corpus.page_of_claim.begin(),
                                        corpus.page_of_claim.begin() + claims);
    EXPECT_EQ(pages.size(), corpus.rows(Table::kEvidence));
    EXPECT_EQ(*pages.rbegin() + 1, corpus.rows(Table::kEvidence));
  }
}

TEST(Corpus, TracesAreLiteralPrefixesOfOneTrajectory) {
  const Corpus corpus = MakeCorpus(kSeed, Scale::k001);
  for (std::uint32_t row = 1; row < corpus.rows(Table::kTraces); ++row) {
    const auto before = DocumentIds(corpus, Table::kTraces, row - 1);
    const auto after = DocumentIds(corpus, Table::kTraces, row);
    const std::size_t shared = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first -
        before.begin());
    const bool same = corpus.snapshots[row].step > 0;
    EXPECT_EQ(shared, same ? before.size() : kTraceHeadTokens) << row;
  }
}

TEST(PromptPieces, TailsShareExactlyTheirFirst18Ids) {
  const std::vector<Piece> pieces = PromptPieces(kSeed);
  for (const Piece& a : pieces) {
    if (a.part != "tail") continue;
    EXPECT_EQ(a.ids.size(), FindQuestion(a.question).tokens);
    for (const Piece& b : pieces) {
      if (b.part != "tail" || a.question == b.question) continue;
      EXPECT_TRUE(std::equal(a.ids.begin(), a.ids.begin() + 18, b.ids.begin()));
      EXPECT_NE(a.ids[18], b.ids[18]);
    }
  }
}

TEST(ReadScale, RefusesAnUnknownScale) {
  EXPECT_EQ(ReadScale("1"), Scale::k1);
  EXPECT_EQ(ReadScale("0.5"), Scale::k05);
  EXPECT_THROW(ReadScale("0.2"), Error);
  EXPECT_THROW(ReadScale(""), Error);
}

}  // namespace
}  // namespace quail::quailb
