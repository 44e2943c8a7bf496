#include "exec/asked_paths.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace quail::exec {
namespace {

using Tokens = AskedPaths::Tokens;

/// Length of the longest common prefix of two concatenations.
std::size_t CommonPrefix(std::span<const Tokens> a, std::span<const Tokens> b) {
  std::size_t common = 0;
  std::size_t in_a = 0;
  std::size_t in_b = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const std::size_t length = std::min(a[i].size() - in_a, b[k].size() - in_b);
    const auto* left = a[i].data() + in_a;
    const auto* right = b[k].data() + in_b;
    const std::size_t equal =
        left == right
            ? length
            : static_cast<std::size_t>(std::mismatch(left, left + length, right).first - left);
    common += equal;
    if (equal < length) return common;
    in_a += length;
    in_b += length;
    if (in_a == a[i].size()) ++i, in_a = 0;
    if (in_b == b[k].size()) ++k, in_b = 0;
  }
  return common;
}

std::size_t LengthOf(std::span<const Tokens> path) {
  return std::accumulate(path.begin(), path.end(), std::size_t{0},
                         [](std::size_t sum, Tokens piece) { return sum + piece.size(); });
}

base::TokenId TokenAt(std::span<const Tokens> path, std::size_t place) {
  for (const Tokens piece : path) {
    if (place < piece.size()) return piece[place];
    place -= piece.size();
  }
  QUAIL_CHECK_MSG(false, "a place behind the end of a path");
}

bool IsLess(std::span<const Tokens> a, std::span<const Tokens> b) {
  const std::size_t common = CommonPrefix(a, b);
  const std::size_t length_a = LengthOf(a);
  const std::size_t length_b = LengthOf(b);
  if (common == length_a || common == length_b) return length_a < length_b;
  return TokenAt(a, common) < TokenAt(b, common);
}

/// For each path its rank among the distinct ones, and one path of each rank.
struct Ranks {
  std::vector<std::uint32_t> of;
  std::vector<std::uint32_t> representatives;
};
template <typename PathOf>
Ranks RankPaths(std::size_t count, PathOf path_of) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(
      order, [&](std::uint32_t a, std::uint32_t b) { return IsLess(path_of(a), path_of(b)); });
  Ranks ranks{std::vector<std::uint32_t>(count), {}};
  for (const std::uint32_t path : order) {
    if (ranks.representatives.empty() ||
        IsLess(path_of(ranks.representatives.back()), path_of(path))) {
      ranks.representatives.push_back(path);
    }
    ranks.of[path] = static_cast<std::uint32_t>(ranks.representatives.size() - 1);
  }
  return ranks;
}

}  // namespace

AskedPaths::Stem AskedPaths::AddStem(std::vector<Tokens> pieces) {
  std::erase_if(pieces, [](Tokens piece) { return piece.empty(); });
  stems_.push_back(std::move(pieces));
  return static_cast<Stem>(stems_.size() - 1);
}

void AskedPaths::Add(Stem stem, Tokens leaf) {
  QUAIL_CHECK(!leaf.empty());
  const auto [found, inserted] =
      leaf_of_.try_emplace(leaf.data(), static_cast<std::uint32_t>(leaves_.size()));
  if (inserted) leaves_.push_back(leaf);
  QUAIL_CHECK_EQ(leaves_[found->second].size(), leaf.size());
  asks_.push_back({stem, found->second});
}

void AskedPaths::Hold(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

std::uint64_t AskedPaths::CountDistinctTokens() const {
  // 1. Stems and leaves sorted by their tokens; an ask is then a pair of ranks.
  const Ranks stems =
      RankPaths(stems_.size(), [&](std::uint32_t i) { return std::span<const Tokens>(stems_[i]); });
  const Ranks leaves =
      RankPaths(leaves_.size(), [&](std::uint32_t i) { return std::span(&leaves_[i], 1); });
  const auto stem = [&](Ask ask) {
    return std::span<const Tokens>(stems_[stems.representatives[ask.stem]]);
  };
  const auto path = [&](Ask ask) {
    std::vector<Tokens> pieces(stem(ask).begin(), stem(ask).end());
    pieces.push_back(leaves_[leaves.representatives[ask.leaf]]);
    return pieces;
  };
  std::vector<Ask> asks;
  asks.reserve(asks_.size());
  for (const Ask& ask : asks_) asks.push_back({stems.of[ask.stem], leaves.of[ask.leaf]});
  std::ranges::sort(asks, {}, [](Ask ask) { return std::pair(ask.stem, ask.leaf); });

  // 2. Where a stem begins others, asks of theirs stand between its own: these are sorted by whole
  //    paths. All stems that begin with a stem follow it.
  for (std::size_t begin = 0; begin < asks.size();) {
    const std::size_t length = LengthOf(stem(asks[begin]));
    std::size_t end = begin + 1;
    while (end < asks.size() && (asks[end].stem == asks[end - 1].stem ||
                                 CommonPrefix(stem(asks[begin]), stem(asks[end])) == length)) {
      ++end;
    }
    if (asks[end - 1].stem != asks[begin].stem) {
      std::sort(asks.begin() + static_cast<std::ptrdiff_t>(begin),
                asks.begin() + static_cast<std::ptrdiff_t>(end),
                [&](Ask a, Ask b) { return IsLess(path(a), path(b)); });
    }
    begin = end;
  }

  // 3. A path adds the tokens behind what it has in common with the one before it.
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const std::vector<Tokens> now = path(asks[i]);
    count += LengthOf(now) - (i == 0 ? 0 : CommonPrefix(path(asks[i - 1]), now));
  }
  return count;
}

}  // namespace quail::exec
