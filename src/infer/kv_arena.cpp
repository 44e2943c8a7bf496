#include "infer/kv_arena.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace quail::infer {

KvArena::KvArena(std::int64_t slots, std::int32_t alignment)
    : slots_(slots), alignment_(std::max<std::int64_t>(1, alignment)), free_(slots) {
  if (slots > 0) AddRange(0, slots);
}

void KvArena::AddRange(std::int64_t first, std::int64_t length) {
  by_first_.emplace(first, length);
  by_length_.emplace(length, first);
}

void KvArena::RemoveRange(Range range) {
  by_length_.erase({range->second, range->first});
  by_first_.erase(range);
}

void KvArena::Take(Range range, std::int64_t first, std::int64_t count,
                   std::vector<KvExtent>& extents) {
  const auto [begin, length] = *range;
  RemoveRange(range);
  if (first > begin) AddRange(begin, first - begin);
  if (first + count < begin + length) AddRange(first + count, begin + length - first - count);
  free_ -= count;
  if (!extents.empty() && extents.back().first + extents.back().length == first) {
    extents.back().length += count;
  } else {
    extents.push_back({first, count});
  }
}

bool KvArena::TakeAt(std::int64_t first, std::int64_t count, std::vector<KvExtent>& extents) {
  auto range = by_first_.upper_bound(first);
  if (range == by_first_.begin()) return false;
  --range;
  if (range->first + range->second < first + count) return false;
  Take(range, first, count, extents);
  return true;
}

bool KvArena::TakeWhole(std::int64_t count, std::vector<KvExtent>& extents) {
  // A range of count + alignment - 1 holds an aligned run wherever it begins; smaller ones are
  // tried as they are.
  for (const std::int64_t wanted : {count + alignment_ - 1, count}) {
    const auto found = by_length_.lower_bound({wanted, 0});
    if (found == by_length_.end()) continue;
    const auto [length, first] = *found;
    const std::int64_t aligned = (first + alignment_ - 1) / alignment_ * alignment_;
    Take(by_first_.find(first), aligned + count <= first + length ? aligned : first, count,
         extents);
    return true;
  }
  return false;
}

void KvArena::Allocate(std::int64_t count, std::int64_t preferred, std::vector<KvExtent>& extents) {
  QUAIL_CHECK_LE(count, free_);
  if (count <= 0) return;
  if (preferred >= 0 && TakeAt(preferred, count, extents)) return;
  if (TakeWhole(count, extents)) return;
  while (count > 0) {
    const auto largest = *by_length_.rbegin();
    const std::int64_t part = std::min(count, largest.first);
    Take(by_first_.find(largest.second), largest.second, part, extents);
    count -= part;
  }
}

void KvArena::Free(const KvExtent& extent) {
  QUAIL_CHECK(extent.first >= 0 && extent.length > 0 && extent.first + extent.length <= slots_);
  std::int64_t first = extent.first;
  std::int64_t length = extent.length;
  auto next = by_first_.lower_bound(first);
  if (next != by_first_.begin()) {
    const auto before = std::prev(next);
    QUAIL_CHECK_LE(before->first + before->second, first);
    if (before->first + before->second == first) {
      first = before->first;
      length += before->second;
      RemoveRange(before);
    }
  }
  if (next != by_first_.end()) {
    QUAIL_CHECK_GE(next->first, extent.first + extent.length);
    if (next->first == extent.first + extent.length) {
      length += next->second;
      RemoveRange(next);
    }
  }
  AddRange(first, length);
  free_ += extent.length;
}

}  // namespace quail::infer
