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

/// A long word as a linked list of symbols, and a heap of the pairs that merge.
class MergeTable::LongWord {
 public:
  LongWord(const MergeTable& table, std::vector<TokenId>& symbols, MergeScratch& scratch)
      : table_(table), symbols_(symbols), list_(scratch) {
    const auto size = static_cast<std::uint32_t>(symbols.size());
    list_.next.resize(size);
    list_.previous.resize(size);
    list_.ranks.resize(size);
    list_.queue.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      list_.previous[i] = i == 0 ? kNone : i - 1;
      list_.next[i] = i + 1 == size ? kNone : i + 1;
      if (UpdateRank(i)) list_.queue.push_back(QueueEntry(list_.ranks[i], i));
    }
    std::make_heap(list_.queue.begin(), list_.queue.end(), std::greater<>());
  }

  void MergeAll() {
    auto& queue = list_.queue;
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end(), std::greater<>());
      const auto rank = static_cast<std::uint32_t>(queue.back() >> 32);
      const auto i = static_cast<std::uint32_t>(queue.back());
      queue.pop_back();
      // Where the ranks differ, the pair has changed since.
      if (list_.ranks[i] == rank) MergeAt(i, rank);
    }
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i != kNone; i = list_.next[i]) symbols_[kept++] = symbols_[i];
    symbols_.resize(kept);
  }

 private:
  bool UpdateRank(std::uint32_t i) {
    const std::uint32_t next = list_.next[i];
    list_.ranks[i] = next == kNone ? kNoRank : table_.Rank(symbols_[i], symbols_[next]);
    return list_.ranks[i] != kNoRank;
  }

  void Requeue(std::uint32_t i) {
    if (!UpdateRank(i)) return;
    list_.queue.push_back(QueueEntry(list_.ranks[i], i));
    std::push_heap(list_.queue.begin(), list_.queue.end(), std::greater<>());
  }

  void MergeAt(std::uint32_t i, std::uint32_t rank) {
    const std::uint32_t absorbed = list_.next[i];
    symbols_[i] = table_.merged_[rank];
    list_.ranks[absorbed] = kNoRank;
    list_.next[i] = list_.next[absorbed];
    if (list_.next[i] != kNone) list_.previous[list_.next[i]] = i;
    Requeue(i);
    if (list_.previous[i] != kNone) Requeue(list_.previous[i]);
  }

  const MergeTable& table_;
  std::vector<TokenId>& symbols_;
  MergeScratch& list_;
};

void MergeTable::Apply(std::vector<TokenId>& word, MergeScratch& scratch) const {
  if (word.size() <= kShortWord) {
    ApplyShort(word);
  } else {
    LongWord(*this, word, scratch).MergeAll();
  }
}

}  // namespace quail::text
