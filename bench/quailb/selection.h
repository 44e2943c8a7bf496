#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace quail::quailb {

/// Which rows of a group have a planted property, in numbers that hold at scale 0.1.
struct SelectionTarget {
  std::uint32_t rows = 0;                    ///< of scale 0.1: those that are counted
  std::uint32_t count = 0;                   ///< of them selected
  std::optional<std::uint64_t> token_total;  ///< lengths of the selected, summed
};

/// Selects the rows of a group with the smallest latent values: the property is a threshold, set so
/// that the target is met exactly, and holds at that threshold for the rows of larger scales. With
/// a token total the latent value is mixed with the length first, and a few rows at the threshold
/// change places.
/// latent, lengths, group: one a row. Returns one a row, false outside the group.
std::vector<bool> Select(std::span<const double> latent, std::span<const std::uint32_t> lengths,
                         const std::vector<bool>& group, const SelectionTarget& target);

using Pair = std::pair<std::uint32_t, std::uint32_t>;
/// A block of pairs, and how many rows of each side scale 0.1 has.
struct PairBlock {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t counted_left = 0;
  std::uint32_t counted_right = 0;
};
/// The pairs with the smallest scores, `count` of them at scale 0.1, by a threshold. Infinite
/// scores are never selected. Ordered by (left, right).
std::vector<Pair> SelectPairs(const PairBlock& block, std::uint64_t count,
                              const std::function<double(std::uint32_t, std::uint32_t)>& score);

}  // namespace quail::quailb
