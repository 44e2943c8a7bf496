#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strong_id.h"

namespace quail::text {

using base::TokenId;

/// Memory that MergeTable::Merge reuses from word to word.
struct MergeScratch {
  std::vector<std::uint32_t> next;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint64_t> queue;
};

/// The merges of a vocabulary, looked up by pair of token ids. Immutable.
class MergeTable {
 public:
  struct Merge {
    TokenId left;
    TokenId right;
    TokenId merged;
  };

  MergeTable() = default;
  /// `merges` in rank order; of equal pairs the last counts, as in HF `tokenizers`.
  explicit MergeTable(std::span<const Merge> merges);

  /// Applies the merges to `word` until none fits, always the one of lowest rank, of several the
  /// leftmost (Sennrich et al. 2016). Quadratic for short words, n log n for long ones.
  void Apply(std::vector<TokenId>& word, MergeScratch& scratch) const;

 private:
  static constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

  class LongWord;

  struct Entry {
    std::uint64_t pair = kEmpty;
    std::uint32_t rank = kNoRank;
    TokenId merged{0};
  };
  static constexpr std::uint64_t kEmpty = std::numeric_limits<std::uint64_t>::max();

  static std::uint64_t PairKey(TokenId left, TokenId right) {
    return std::uint64_t{static_cast<std::uint32_t>(left.value())} << 32 |
           static_cast<std::uint32_t>(right.value());
  }
  std::size_t Place(std::uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15U) >> shift_; }
  std::uint32_t Rank(TokenId left, TokenId right) const {
    const std::uint64_t pair = PairKey(left, right);
    for (std::size_t i = Place(pair);; i = (i + 1) & mask_) {
      const Entry& entry = entries_[i];
      if (entry.pair == pair) return entry.rank;
      if (entry.pair == kEmpty) return kNoRank;
    }
  }

  void ApplyShort(std::vector<TokenId>& word) const;

  std::vector<Entry> entries_ = std::vector<Entry>(2);
  std::vector<TokenId> merged_;  ///< by rank
  std::size_t mask_ = 1;
  unsigned shift_ = 63;
};

}  // namespace quail::text
