#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace quail::infer {

/// Consecutive slots [first, first + length) of the KV arena.
struct KvExtent {
  std::int64_t first = 0;
  std::int64_t length = 0;

  bool operator==(const KvExtent&) const = default;
};

/// Which slots of the KV arena are free. A slot holds K and V of one position in all layers.
class KvArena {
 public:
  /// New ranges begin at multiples of `alignment` where a free range allows it.
  KvArena(std::int64_t slots, std::int32_t alignment);

  std::int64_t slots() const { return slots_; }
  std::int64_t free_slots() const { return free_; }

  /// Appends `count` slots to `extents`: at `preferred` if enough are free there (-1: no
  /// preference), else the smallest range that holds them, else several ranges, largest first.
  /// Adjacent extents are merged. REQUIRES: count <= free_slots().
  void Allocate(std::int64_t count, std::int64_t preferred, std::vector<KvExtent>& extents);
  void Free(const KvExtent& extent);

 private:
  using Range = std::map<std::int64_t, std::int64_t>::iterator;

  void AddRange(std::int64_t first, std::int64_t length);
  void RemoveRange(Range range);
  /// Takes [first, first + count) out of a free range that contains it.
  void Take(Range range, std::int64_t first, std::int64_t count, std::vector<KvExtent>& extents);
  bool TakeAt(std::int64_t first, std::int64_t count, std::vector<KvExtent>& extents);
  bool TakeWhole(std::int64_t count, std::vector<KvExtent>& extents);

  std::int64_t slots_;
  std::int64_t alignment_;
  std::int64_t free_;
  std::map<std::int64_t, std::int64_t> by_first_;  ///< first -> length; no two ranges touch
  std::set<std::pair<std::int64_t, std::int64_t>> by_length_;  ///< (length, first)
};

}  // namespace quail::infer
