#include "exec/verdicts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace quail::exec {
namespace {

std::vector<TextId> Ids(std::initializer_list<std::uint32_t> values) {
  std::vector<TextId> ids;
  for (const std::uint32_t value : values) ids.emplace_back(value);
  return ids;
}

TEST(VerdictTable, KeepsEachKindOfVerdict) {
  VerdictTable table(1, true);
  table.Set(Ids({7}), Verdict::kTrue, 2.5F, "");
  table.Set(Ids({8}), Verdict::kFalse, -1.0F, "");
  table.Set(Ids({9}), Verdict::kNull, 0, "");
  table.Set(Ids({10}), Verdict::kError, 0, "too long");
  EXPECT_EQ(table.Find(Ids({7})).verdict, Verdict::kTrue);
  EXPECT_EQ(table.Find(Ids({7})).margin, 2.5F);
  EXPECT_EQ(table.Find(Ids({8})).verdict, Verdict::kFalse);
  EXPECT_EQ(table.Find(Ids({9})).verdict, Verdict::kNull);
  const Judgement failed = table.Find(Ids({10}));
  EXPECT_EQ(failed.verdict, Verdict::kError);
  EXPECT_EQ(table.reasons()[failed.reason], "too long");
  EXPECT_EQ(table.Find(Ids({11})).verdict, Verdict::kUndecided);
  EXPECT_EQ(table.decided(), 4U);
  ASSERT_EQ(table.Failures().size(), 1U);
  EXPECT_EQ(table.Failures()[0].key, Ids({10}));
}

TEST(VerdictTable, OneTextAKeyWhateverItsNumber) {
  VerdictTable table(1, true);
  for (const std::uint32_t id : {7U, 0U, 1'000'003U, 12U}) {
    const std::vector<TextId> key = {TextId(id)};
    EXPECT_EQ(table.Find(key).verdict, Verdict::kUndecided);
    table.Set(key, Verdict::kTrue, static_cast<float>(id), "");
  }
  table.Set(std::vector{TextId(12)}, Verdict::kError, 0, "boom");
  EXPECT_EQ(table.decided(), 4U);
  EXPECT_EQ(table.Find(std::vector{TextId(1'000'003)}).margin, 1'000'003.0F);
  EXPECT_EQ(table.Find(std::vector{TextId(11)}).verdict, Verdict::kUndecided);
  EXPECT_EQ(table.Find(std::vector{TextId(12)}).verdict, Verdict::kError);
  EXPECT_EQ(table.Find(std::vector{kNullText}).verdict, Verdict::kUndecided);
  ASSERT_EQ(table.Failures().size(), 1U);
}

TEST(VerdictTable, HoldsOneVerdictForAPromptWithoutArguments) {
  VerdictTable table(0, false);
  EXPECT_EQ(table.Find({}).verdict, Verdict::kUndecided);
  table.Set({}, Verdict::kFalse, -1, "");
  EXPECT_EQ(table.Find({}).verdict, Verdict::kFalse);
}

TEST(VerdictTable, OrderOfAKeyMatters) {
  VerdictTable table(2, false);
  table.Set(Ids({1, 2}), Verdict::kTrue, 1, "");
  EXPECT_EQ(table.Find(Ids({2, 1})).verdict, Verdict::kUndecided);
}

TEST(VerdictTable, MatrixAndHashTableAgreeWithAMap) {
  std::mt19937 generator(11);
  const auto random = [&](std::uint32_t n) { return static_cast<std::uint32_t>(generator()) % n; };
  VerdictTable table(2, true);
  const auto rows = Ids({3, 900, 5, 40, 41});
  const auto columns = Ids({5, 3, 77});
  table.AddMatrix(rows, columns);
  std::map<std::vector<TextId>, std::pair<Verdict, float>> expected;
  for (int i = 0; i < 4000; ++i) {
    // Inside and outside of the matrix.
    const std::vector<TextId> key = Ids({random(60), random(80)});
    const auto verdict = static_cast<Verdict>(1 + random(4));
    if (expected.contains(key)) continue;
    const auto margin = static_cast<float>(random(100));
    table.Set(key, verdict, margin, verdict == Verdict::kError ? "e" : "");
    expected[key] = {verdict, margin};
  }
  EXPECT_EQ(table.decided(), expected.size());
  for (std::uint32_t a = 0; a < 60; ++a) {
    for (std::uint32_t b = 0; b < 80; ++b) {
      const auto found = expected.find(Ids({a, b}));
      const Judgement judgement = table.Find(Ids({a, b}));
      if (found == expected.end()) {
        EXPECT_EQ(judgement.verdict, Verdict::kUndecided);
        continue;
      }
      EXPECT_EQ(judgement.verdict, found->second.first) << a << " " << b;
      if (judgement.verdict == Verdict::kTrue) {
        EXPECT_EQ(judgement.margin, found->second.second);
      }
    }
  }
}

TEST(Probability, IsAboveOneHalfExactlyForPositiveMargins) {
  EXPECT_GT(Probability(1e-30F), 0.5);
  EXPECT_EQ(Probability(0.0F), 0.5);
  EXPECT_LE(Probability(-1e-30F), 0.5);
  EXPECT_NEAR(Probability(1.0F), 0.7310585786, 1e-9);
}

}  // namespace
}  // namespace quail::exec
