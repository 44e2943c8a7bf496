#include "quailb/selection.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "quailb/lengths.h"

namespace quail::quailb {
namespace {

/// Rows of the group below `end`.
std::vector<std::uint32_t> Members(const std::vector<bool>& group, std::size_t end) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t row = 0; row < end; ++row) {
    if (group[row]) members.push_back(row);
  }
  return members;
}

/// A latent value mixed with the length: a positive weight prefers long documents.
struct Score {
  std::span<const double> latent;
  std::span<const std::uint32_t> lengths;
  double weight = 0;

  double operator()(std::uint32_t row) const {
    return latent[row] - weight * std::log(static_cast<double>(lengths[row]));
  }
};

void SortByScore(std::vector<std::uint32_t>& rows, const Score& score) {
  std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(score(a), a) < std::pair(score(b), b);
  });
}

std::int64_t TokensOf(std::span<const std::uint32_t> rows, std::span<const std::uint32_t> lengths) {
  std::int64_t tokens = 0;
  for (const std::uint32_t row : rows) tokens += lengths[row];
  return tokens;
}

double FindWeight(std::vector<std::uint32_t> members, Score score, const SelectionTarget& target) {
  return Bisect(-10, 10, static_cast<double>(*target.token_total), [&](double weight) {
    score.weight = weight;
    SortByScore(members, score);
    return static_cast<double>(TokensOf(std::span(members).first(target.count), score.lengths));
  });
}

/// Exchanges selected rows (the first `count`) for others until their lengths sum up to the target;
/// each time the pair that closes most of the gap and, among those, is closest to the threshold.
void Exchange(std::vector<std::uint32_t>& members, std::span<const std::uint32_t> lengths,
              const SelectionTarget& target) {
  const auto selected = std::span(members).first(target.count);
  const auto others = std::span(members).subspan(target.count);
  const auto wanted = static_cast<std::int64_t>(*target.token_total);
  for (std::int64_t gap; (gap = wanted - TokensOf(selected, lengths)) != 0;) {
    std::int64_t least = std::abs(gap);
    std::pair<std::size_t, std::size_t> best{0, others.size()};
    for (std::size_t i = selected.size(); i-- > 0 && least > 0;) {
      for (std::size_t j = 0; j < others.size() && least > 0; ++j) {
        const std::int64_t change =
            static_cast<std::int64_t>(lengths[others[j]]) - lengths[selected[i]];
        if (std::abs(gap - change) >= least) continue;
        least = std::abs(gap - change);
        best = {i, j};
      }
    }
    QUAIL_CHECK_MSG(best.second < others.size(), "no selection has the wanted tokens");
    std::swap(selected[best.first], others[best.second]);
  }
}

}  // namespace

std::vector<bool> Select(std::span<const double> latent, std::span<const std::uint32_t> lengths,
                         const std::vector<bool>& group, const SelectionTarget& target) {
  std::vector<std::uint32_t> members = Members(group, target.rows);
  QUAIL_CHECK_MSG(members.size() > target.count, "the group is smaller than what is selected");
  Score score{latent, lengths, 0};
  if (target.token_total) score.weight = FindWeight(members, score, target);
  SortByScore(members, score);
  const double threshold = score(members[target.count]);
  if (target.token_total) Exchange(members, lengths, target);

  std::vector<bool> selected(group.size(), false);
  for (std::uint32_t i = 0; i < target.count; ++i) selected[members[i]] = true;
  for (std::uint32_t row = target.rows; row < group.size(); ++row) {
    selected[row] = group[row] && score(row) < threshold;
  }
  return selected;
}

std::vector<Pair> SelectPairs(const PairBlock& block, std::uint64_t count,
                              const std::function<double(std::uint32_t, std::uint32_t)>& score) {
  std::vector<double> scores;
  scores.reserve(std::size_t{block.counted_left} * block.counted_right);
  for (std::uint32_t left = 0; left < block.counted_left; ++left) {
    for (std::uint32_t right = 0; right < block.counted_right; ++right) {
      scores.push_back(score(left, right));
    }
  }
  QUAIL_CHECK(count < scores.size());
  const auto place = scores.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(scores.begin(), place, scores.end());
  const double threshold = *place;
  std::vector<Pair> pairs;
  for (std::uint32_t left = 0; left < block.left; ++left) {
    for (std::uint32_t right = 0; right < block.right; ++right) {
      if (score(left, right) < threshold) pairs.emplace_back(left, right);
    }
  }
  return pairs;
}

}  // namespace quail::quailb
