#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace quail::text {

/// Append-only storage for runs of trivially copyable values; a run never moves. Blocks double from
/// 4 KiB to 256 KiB, so a little-used arena stays small; a run of more than a quarter of a block
/// gets a block of its own. Not thread-safe.
template <typename T>
class Arena {
 public:
  /// A copy of `values` that lives as long as the arena. REQUIRES: not empty.
  const T* Copy(std::span<const T> values) {
    T* target = Allocate(values.size());
    std::memcpy(target, values.data(), values.size_bytes());
    return target;
  }

 private:
  static constexpr std::size_t kFirstBlock = 4096 / sizeof(T);
  static constexpr std::size_t kLastBlock = 262144 / sizeof(T);

  T* Allocate(std::size_t count) {
    if (count <= free_) {
      T* target = next_;
      next_ += count;
      free_ -= count;
      return target;
    }
    if (count > next_block_ / 4) return NewBlock(count);
    T* block = NewBlock(next_block_);
    next_ = block + count;
    free_ = next_block_ - count;
    next_block_ = std::min(next_block_ * 2, kLastBlock);
    return block;
  }

  T* NewBlock(std::size_t count) {
    blocks_.push_back(std::make_unique_for_overwrite<T[]>(count));
    return blocks_.back().get();
  }

  std::vector<std::unique_ptr<T[]>> blocks_;
  T* next_ = nullptr;
  std::size_t free_ = 0;
  std::size_t next_block_ = kFirstBlock;
};

}  // namespace quail::text
