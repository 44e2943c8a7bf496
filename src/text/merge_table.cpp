#include "text/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace quail::text {
namespace {

/// Up to this many symbols, scanning for the lowest rank beats a heap.
constexpr std::size_t kShortWord = 64;

/// Ends the linked list of a long word's symbols.
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::uint64_t QueueEntry(std::uint32_t rank, std::uint32_t position) {
  return std::uint64_t{rank} << 32 | position;
}

}  // namespace

MergeTable::MergeTable(std::span<const Merge> merges) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 2));
  entries_.assign(capacity, Entry{});
  mask_ = capacity - 1;
  shift_ = 64 - static_cast<unsigned>(std::bit_width(mask_));
  merged_.reserve(merges.size());
  for (const Merge& merge : merges) {
    const std::uint64_t pair = PairKey(merge.left, merge.right);
    std::size_t i = Place(pair);
    while (entries_[i].pair != kEmpty && entries_[i].pair != pair) i = (i + 1) & mask_;
    entries_[i] = {pair, static_cast<std::uint32_t>(merged_.size()), merge.merged};
    merged_.push_back(merge.merged);
  }
}

void MergeTable::Apply(std::vector<TokenId>& word, MergeScratch& scratch) const {
  if (word.size() <= kShortWord) {
    ApplyShort(word);
  } else {
    ApplyLong(word, scratch);
  }
}

void MergeTable::ApplyShort(std::vector<TokenId>& word) const {
  std::array<std::uint32_t, kShortWord> ranks;  // ranks[i] is that of the pair (i, i + 1)
  std::size_t size = word.size();
  if (size < 2) return;
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = Rank(word[i], word[i + 1]);
  while (size > 1) {
    const auto* lowest = std::min_element(ranks.begin(), ranks.begin() + (size - 1));
    if (*lowest == kNoRank) break;
    const auto i = static_cast<std::size_t>(lowest - ranks.begin());
    word[i] = merged_[*lowest];
    std::copy(word.begin() + static_cast<std::ptrdiff_t>(i) + 2,
              word.begin() + static_cast<std::ptrdiff_t>(size),
              word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    std::copy(ranks.begin() + i + 1, ranks.begin() + (size - 1), ranks.begin() + i);
    --size;
    if (i > 0) ranks[i - 1] = Rank(word[i - 1], word[i]);
    if (i + 1 < size) ranks[i] = Rank(word[i], word[i + 1]);
  }
  word.resize(size);
}

void MergeTable::ApplyLong(std::vector<TokenId>& word, MergeScratch& scratch) const {
  const auto size = static_cast<std::uint32_t>(word.size());
  auto& [next, previous, ranks, queue] = scratch;
  next.resize(size);
  previous.resize(size);
  ranks.resize(size);
  queue.clear();
  for (std::uint32_t i = 0; i < size; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == size ? kNone : i + 1;
    ranks[i] = next[i] == kNone ? kNoRank : Rank(word[i], word[next[i]]);
    if (ranks[i] != kNoRank) queue.push_back(QueueEntry(ranks[i], i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto update = [&](std::uint32_t i) {
    ranks[i] = next[i] == kNone ? kNoRank : Rank(word[i], word[next[i]]);
    if (ranks[i] == kNoRank) return;
    queue.push_back(QueueEntry(ranks[i], i));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto rank = static_cast<std::uint32_t>(queue.back() >> 32);
    const auto i = static_cast<std::uint32_t>(queue.back());
    queue.pop_back();
    if (ranks[i] != rank) continue;  // its pair has changed since
    const std::uint32_t absorbed = next[i];
    word[i] = merged_[rank];
    ranks[absorbed] = kNoRank;
    next[i] = next[absorbed];
    if (next[i] != kNone) previous[next[i]] = i;
    update(i);
    if (previous[i] != kNone) update(previous[i]);
  }
  std::size_t kept = 0;
  for (std::uint32_t i = 0; i != kNone; i = next[i]) word[kept++] = word[i];
  word.resize(kept);
}

}  // namespace quail::text
