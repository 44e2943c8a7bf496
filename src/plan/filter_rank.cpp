#include "plan/filter_rank.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace quail::plan {

namespace {

double RankOf(const RankedFilter& filter) {
  if (filter.pass_rate >= 1) return std::numeric_limits<double>::infinity();
  return filter.ask_seconds / (1 - filter.pass_rate);
}

}  // namespace

double ExpectedSeconds(std::span<const RankedFilter> filters, std::span<const std::size_t> order) {
  double seconds = 0;
  double reached = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const RankedFilter& filter = filters[order[i]];
    seconds += reached * (i == 0 ? filter.first_seconds : filter.ask_seconds);
    reached *= filter.pass_rate;
  }
  return seconds;
}

std::vector<std::size_t> RankFilters(std::span<const RankedFilter> filters) {
  std::vector<std::size_t> by_rank(filters.size());
  std::iota(by_rank.begin(), by_rank.end(), std::size_t{0});
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](std::size_t a, std::size_t b) {
    return RankOf(filters[a]) < RankOf(filters[b]);
  });
  std::vector<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < filters.size(); ++first) {
    std::vector<std::size_t> order = {first};
    std::copy_if(by_rank.begin(), by_rank.end(), std::back_inserter(order),
                 [first](std::size_t i) { return i != first; });
    const double seconds = ExpectedSeconds(filters, order);
    if (best.empty() || seconds < least) {
      least = seconds;
      best = std::move(order);
    }
  }
  return best;
}

}  // namespace quail::plan
