#include "plan/filter_rank.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace quail::plan {
namespace {

TEST(FilterRank, CheapAndSelectiveFiltersGoFirst) {
  const std::vector<RankedFilter> filters = {{11, 1, 0.9}, {11, 1, 0.1}, {15, 5, 0.1}};
  EXPECT_EQ(RankFilters(filters), (std::vector<std::size_t>{1, 2, 0}));
}

TEST(FilterRank, TheFirstPaysTheDocument) {
  // The second filter is cheap once the document is held, and dear as the first.
  const std::vector<RankedFilter> filters = {{10, 9, 0.5}, {30, 1, 0.5}};
  EXPECT_EQ(RankFilters(filters), (std::vector<std::size_t>{0, 1}));
}

TEST(FilterRank, TiesKeepTheWrittenOrder) {
  const std::vector<RankedFilter> same(4, RankedFilter{10, 1, 0.2});
  EXPECT_EQ(RankFilters(same), (std::vector<std::size_t>{0, 1, 2, 3}));
  const std::vector<RankedFilter> rejects_nothing = {{10, 1, 1.0}, {10, 1, 1.0}};
  EXPECT_EQ(RankFilters(rejects_nothing), (std::vector<std::size_t>{0, 1}));
  EXPECT_TRUE(RankFilters({}).empty());
}

RC_GTEST_PROP(FilterRankProperty, NoOrderIsExpectedToBeCheaper, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  std::vector<RankedFilter> filters;
  for (std::size_t i = 0; i < count; ++i) {
    RankedFilter filter;
    filter.ask_seconds = *rc::gen::inRange(1, 100) / 10.0;
    filter.first_seconds = filter.ask_seconds + *rc::gen::inRange(0, 100) / 10.0;
    filter.pass_rate = *rc::gen::inRange(0, 101) / 100.0;
    filters.push_back(filter);
  }
  const double chosen = ExpectedSeconds(filters, RankFilters(filters));
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    RC_ASSERT(chosen <= ExpectedSeconds(filters, order) * (1 + 1e-12));
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace quail::plan
