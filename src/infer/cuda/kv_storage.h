#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infer/backend.h"
#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {

/// The KV arena on the device: bf16 [slots, K, D] of keys and of values, a layer each.
class KvStorage {
 public:
  /// Throws Error{kOutOfMemory}.
  void Reserve(const KvShape& shape, std::int64_t slots);

  std::int64_t slots() const { return slots_; }
  std::int64_t bytes_per_token() const {
    return std::int64_t{4} * shape_.layers * shape_.kv_heads * shape_.head_dim;
  }
  __nv_bfloat16* keys(std::int32_t layer) const {
    return keys_[static_cast<std::size_t>(layer)].as<__nv_bfloat16>();
  }
  __nv_bfloat16* values(std::int32_t layer) const {
    return values_[static_cast<std::size_t>(layer)].as<__nv_bfloat16>();
  }

  /// Host layout: [layer][keys, values][slots, K, D]. Both wait for the stream.
  void CopyOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host,
               cudaStream_t stream) const;
  void CopyIn(std::int64_t first_slot, std::int64_t slots, std::span<const std::byte> host,
              cudaStream_t stream) const;

 private:
  template <typename Copy>
  void ForEachPart(std::int64_t first_slot, std::int64_t slots, const Copy& copy) const;

  KvShape shape_;
  std::int64_t slots_ = 0;
  std::vector<DeviceBuffer> keys_;
  std::vector<DeviceBuffer> values_;
};

}  // namespace quail::infer::cuda
