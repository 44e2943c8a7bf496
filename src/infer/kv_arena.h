#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quail::infer {

/// Consecutive slots [first, first + length) of the KV arena.
struct KvExtent {
  std::int64_t first = 0;
  std::int64_t length = 0;

  std::int64_t end() const { return first + length; }
  bool operator==(const KvExtent&) const = default;
};

/// Which slots of the KV arena are free. A slot holds K and V of one position in all layers. Free
/// ranges lie in order in blocks, each with its longest range's length: one block is searched and
/// few are looked at, and a range that shrinks or grows stays where it is.
class KvArena {
 public:
  /// New ranges begin at multiples of `alignment` where a free range allows it.
  KvArena(std::int64_t slots, std::int32_t alignment);

  std::int64_t slots() const { return slots_; }
  std::int64_t free_slots() const { return free_; }

  /// Appends `count` slots to `extents`: at `preferred` if enough are free there (-1: no
  /// preference), else from the first range that holds them, else from several ranges, longest
  /// first. Adjacent extents are merged. REQUIRES: count <= free_slots().
  /// Slots of the longest free range.
  std::int64_t longest_free() const;
  void Allocate(std::int64_t count, std::int64_t preferred, std::vector<KvExtent>& extents);
  void Free(const KvExtent& extent);

 private:
  struct Block {
    std::vector<KvExtent> ranges;  ///< never empty, but for the only block
    std::int64_t longest = 0;
  };
  /// A free range.
  struct Place {
    std::size_t block = 0;
    std::size_t at = 0;
  };

  KvExtent& RangeAt(const Place& place) { return blocks_[place.block].ranges[place.at]; }
  /// The last range that begins at or before `first`; false if there is none.
  bool LastUpTo(std::int64_t first, Place& place) const;
  /// The first range of at least `length` slots.
  bool FirstOf(std::int64_t length, Place& place) const;
  Place Longest() const;
  void Insert(const KvExtent& range);
  void Erase(const Place& place);
  void Resize(const Place& place, const KvExtent& range);
  void MeasureLongest(Block& block);

  /// Takes [first, first + count) out of a free range that contains it.
  void Take(const Place& place, std::int64_t first, std::int64_t count,
            std::vector<KvExtent>& extents);
  bool TakeAt(std::int64_t first, std::int64_t count, std::vector<KvExtent>& extents);
  bool TakeWhole(std::int64_t count, std::vector<KvExtent>& extents);

  std::int64_t slots_;
  std::int64_t alignment_;
  std::int64_t free_;
  std::vector<Block> blocks_;  ///< in the order of their ranges
};

}  // namespace quail::infer
