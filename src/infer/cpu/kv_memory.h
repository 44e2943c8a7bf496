#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "infer/backend.h"

namespace quail::infer::cpu {

/// K and V of a number of slots: [layer, kv head, K or V, slot, head size], all offsets 64-bit.
/// Pages are taken from the system as they are written.
class KvMemory {
 public:
  KvMemory() = default;
  /// Throws Error{kOutOfMemory} with the sizes.
  KvMemory(const KvShape& shape, std::int64_t slots, std::size_t element_bytes);
  ~KvMemory();
  KvMemory(KvMemory&& other) noexcept;
  KvMemory& operator=(KvMemory&& other) noexcept;

  const KvShape& shape() const { return shape_; }
  std::int64_t slots() const { return slots_; }
  std::int64_t bytes_per_slot() const;
  /// Vectors of consecutive slots, vector_bytes() apart.
  std::byte* Keys(std::int32_t layer, std::int32_t head, std::int64_t slot) const {
    return Vector(layer, head, 0, slot);
  }
  std::byte* Values(std::int32_t layer, std::int32_t head, std::int64_t slot) const {
    return Vector(layer, head, 1, slot);
  }
  /// Slots to and from a host buffer of bytes_per_slot() each: slot by slot, in it layer, head, K
  /// and V.
  void CopyOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) const;
  void CopyIn(std::int64_t first_slot, std::int64_t slots, std::span<const std::byte> host);
  std::size_t vector_bytes() const {
    return static_cast<std::size_t>(shape_.head_dim) * element_bytes_;
  }

 private:
  std::byte* Vector(std::int64_t layer, std::int64_t head, std::int64_t which,
                    std::int64_t slot) const {
    const std::int64_t row = ((layer * shape_.kv_heads + head) * 2 + which) * slots_ + slot;
    return data_ + static_cast<std::size_t>(row) * vector_bytes();
  }

  KvShape shape_;
  std::int64_t slots_ = 0;
  std::size_t element_bytes_ = 4;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace quail::infer::cpu
