#include "infer/cuda/kv_storage.h"

namespace quail::infer::cuda {

void KvStorage::Reserve(const KvShape& shape, std::int64_t slots) {
  shape_ = shape;
  slots_ = slots;
  const std::size_t bytes = static_cast<std::size_t>(slots) *
                            static_cast<std::size_t>(shape.kv_heads * shape.head_dim) * 2;
  for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
    keys_.emplace_back(bytes, "the KV arena (keys of a layer)");
    values_.emplace_back(bytes, "the KV arena (values of a layer)");
    // Attention reads whole boxes: a slot that was never written must be finite, since 0 * NaN is
    // NaN.
    CheckCuda(cudaMemset(keys_.back().data(), 0, bytes), "KV arena");
    CheckCuda(cudaMemset(values_.back().data(), 0, bytes), "KV arena");
  }
}

template <typename Copy>
void KvStorage::ForEachPart(std::int64_t first_slot, std::int64_t slots, const Copy& copy) const {
  const auto slot_bytes = static_cast<std::size_t>(shape_.kv_heads * shape_.head_dim) * 2;
  const std::size_t bytes = static_cast<std::size_t>(slots) * slot_bytes;
  std::size_t offset = 0;
  for (std::size_t layer = 0; layer < keys_.size(); ++layer) {
    for (const DeviceBuffer* buffer : {&keys_[layer], &values_[layer]}) {
      std::byte* at = buffer->data() + static_cast<std::size_t>(first_slot) * slot_bytes;
      CheckCuda(copy(at, offset, bytes), "KV copy");
      offset += bytes;
    }
  }
}

void KvStorage::CopyOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host,
                        cudaStream_t stream) const {
  ForEachPart(first_slot, slots, [&](std::byte* device, std::size_t offset, std::size_t bytes) {
    return cudaMemcpyAsync(host.data() + offset, device, bytes, cudaMemcpyDeviceToHost, stream);
  });
  CheckCuda(cudaStreamSynchronize(stream), "KV copy");
}

void KvStorage::CopyIn(std::int64_t first_slot, std::int64_t slots, std::span<const std::byte> host,
                       cudaStream_t stream) const {
  ForEachPart(first_slot, slots, [&](std::byte* device, std::size_t offset, std::size_t bytes) {
    return cudaMemcpyAsync(device, host.data() + offset, bytes, cudaMemcpyHostToDevice, stream);
  });
  CheckCuda(cudaStreamSynchronize(stream), "KV copy");
}

}  // namespace quail::infer::cuda
