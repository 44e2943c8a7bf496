#include "infer/kv_arena.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace quail::infer {
namespace {

/// Most ranges of a block: 1 KiB.
constexpr std::size_t kBlockRanges = 64;

std::ptrdiff_t Offset(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

}  // namespace

KvArena::KvArena(std::int64_t slots, std::int32_t alignment)
    : slots_(slots), alignment_(std::max<std::int64_t>(1, alignment)), free_(slots), blocks_(1) {
  if (slots > 0) Insert({0, slots});
}

bool KvArena::LastUpTo(std::int64_t first, Place& place) const {
  const auto block =
      std::upper_bound(blocks_.begin(), blocks_.end(), first, [](std::int64_t at, const Block& b) {
        return !b.ranges.empty() && at < b.ranges.front().first;
      });
  if (block == blocks_.begin()) return false;
  place.block = static_cast<std::size_t>(std::prev(block) - blocks_.begin());
  const std::vector<KvExtent>& ranges = blocks_[place.block].ranges;
  const auto range =
      std::upper_bound(ranges.begin(), ranges.end(), first,
                       [](std::int64_t at, const KvExtent& r) { return at < r.first; });
  if (range == ranges.begin()) return false;
  place.at = static_cast<std::size_t>(std::prev(range) - ranges.begin());
  return true;
}

bool KvArena::FirstOf(std::int64_t length, Place& place) const {
  for (place.block = 0; place.block < blocks_.size(); ++place.block) {
    const Block& block = blocks_[place.block];
    if (block.longest < length) continue;
    for (place.at = 0; block.ranges[place.at].length < length;) ++place.at;
    return true;
  }
  return false;
}

std::int64_t KvArena::longest_free() const {
  return std::ranges::max_element(blocks_, {}, &Block::longest)->longest;
}

KvArena::Place KvArena::Longest() const {
  const auto block = std::ranges::max_element(blocks_, {}, &Block::longest);
  const auto range = std::ranges::max_element(block->ranges, {}, &KvExtent::length);
  return {static_cast<std::size_t>(block - blocks_.begin()),
          static_cast<std::size_t>(range - block->ranges.begin())};
}

void KvArena::MeasureLongest(Block& block) {
  block.longest = 0;
  for (const KvExtent& range : block.ranges) block.longest = std::max(block.longest, range.length);
}

void KvArena::Insert(const KvExtent& range) {
  Place before;
  const bool any = LastUpTo(range.first, before);
  const std::size_t index = any ? before.block : 0;
  std::vector<KvExtent>& ranges = blocks_[index].ranges;
  ranges.insert(ranges.begin() + Offset(any ? before.at + 1 : 0), range);
  blocks_[index].longest = std::max(blocks_[index].longest, range.length);
  if (ranges.size() <= kBlockRanges) return;
  Block upper;
  upper.ranges.assign(ranges.begin() + Offset(kBlockRanges / 2), ranges.end());
  ranges.resize(kBlockRanges / 2);
  MeasureLongest(upper);
  MeasureLongest(blocks_[index]);
  blocks_.insert(blocks_.begin() + Offset(index + 1), std::move(upper));
}

void KvArena::Erase(const Place& place) {
  Block& block = blocks_[place.block];
  const std::int64_t length = block.ranges[place.at].length;
  block.ranges.erase(block.ranges.begin() + Offset(place.at));
  if (block.ranges.empty() && blocks_.size() > 1) {
    blocks_.erase(blocks_.begin() + Offset(place.block));
  } else if (length == block.longest) {
    MeasureLongest(block);
  }
}

void KvArena::Resize(const Place& place, const KvExtent& range) {
  Block& block = blocks_[place.block];
  const std::int64_t length = std::exchange(block.ranges[place.at], range).length;
  if (range.length >= block.longest) {
    block.longest = range.length;
  } else if (length == block.longest) {
    MeasureLongest(block);
  }
}

void KvArena::Take(const Place& place, std::int64_t first, std::int64_t count,
                   std::vector<KvExtent>& extents) {
  const KvExtent range = RangeAt(place);
  const KvExtent before{range.first, first - range.first};
  const KvExtent after{first + count, range.end() - first - count};
  if (before.length == 0 && after.length == 0) {
    Erase(place);
  } else {
    Resize(place, before.length > 0 ? before : after);
    if (before.length > 0 && after.length > 0) Insert(after);
  }
  free_ -= count;
  if (!extents.empty() && extents.back().end() == first) {
    extents.back().length += count;
  } else {
    extents.push_back({first, count});
  }
}

bool KvArena::TakeAt(std::int64_t first, std::int64_t count, std::vector<KvExtent>& extents) {
  Place place;
  if (!LastUpTo(first, place) || RangeAt(place).end() < first + count) return false;
  Take(place, first, count, extents);
  return true;
}

bool KvArena::TakeWhole(std::int64_t count, std::vector<KvExtent>& extents) {
  // A range of count + alignment - 1 holds an aligned run wherever it begins; smaller ones are
  // tried as they are.
  for (const std::int64_t wanted : {count + alignment_ - 1, count}) {
    Place place;
    if (!FirstOf(wanted, place)) continue;
    const KvExtent range = RangeAt(place);
    const std::int64_t aligned = (range.first + alignment_ - 1) / alignment_ * alignment_;
    Take(place, aligned + count <= range.end() ? aligned : range.first, count, extents);
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
    const Place place = Longest();
    const std::int64_t part = std::min(count, RangeAt(place).length);
    Take(place, RangeAt(place).first, part, extents);
    count -= part;
  }
}

void KvArena::Free(const KvExtent& extent) {
  QUAIL_CHECK(extent.first >= 0 && extent.length > 0 && extent.end() <= slots_);
  free_ += extent.length;
  Place before;
  const bool any = LastUpTo(extent.first, before);
  if (any) QUAIL_CHECK_LE(RangeAt(before).end(), extent.first);
  Place next = any ? Place{before.block, before.at + 1} : Place{};
  if (next.at == blocks_[next.block].ranges.size()) next = {next.block + 1, 0};
  const bool more = next.block < blocks_.size() && next.at < blocks_[next.block].ranges.size();
  if (more) QUAIL_CHECK_GE(RangeAt(next).first, extent.end());
  const bool joins_before = any && RangeAt(before).end() == extent.first;
  const bool joins_next = more && RangeAt(next).first == extent.end();
  if (joins_before) {
    const KvExtent grown{RangeAt(before).first, RangeAt(before).length + extent.length};
    Resize(before, {grown.first, grown.length + (joins_next ? RangeAt(next).length : 0)});
    if (joins_next) Erase(next);
  } else if (joins_next) {
    Resize(next, {extent.first, extent.length + RangeAt(next).length});
  } else {
    Insert(extent);
  }
}

}  // namespace quail::infer
