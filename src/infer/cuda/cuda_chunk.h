#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "infer/backend.h"
#include "infer/cuda/attention_work.h"
#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {

/// Most rows of an answer head.
constexpr std::size_t kMaxAnswerColumns = 32;

/// One block of device memory that a chunk's descriptors are copied into at once.
class DescriptorArena {
 public:
  /// Reserves room for `values`; its device address is known after Upload.
  template <typename T>
  std::size_t Add(std::span<const T> values) {
    const std::size_t at = host_.size();
    host_.resize((at + values.size_bytes() + 15) / 16 * 16);
    if (!values.empty()) std::memcpy(host_.data() + at, values.data(), values.size_bytes());
    return at;
  }

  void Clear() { host_.clear(); }

  void Upload(cudaStream_t stream);

  template <typename T>
  const T* At(std::size_t at) const {
    return reinterpret_cast<const T*>(device_.data() + at);
  }

 private:
  std::vector<std::byte> host_;
  PinnedBuffer pinned_;
  DeviceBuffer device_;
};

/// Descriptors and results of one chunk in flight; reused when the chunk is destroyed.
struct ChunkSlot {
  DescriptorArena arena;
  AttentionWork all_work;
  AttentionWork kept_work;
  PinnedBuffer results;
  DeviceBuffer device_results;
  cudaEvent_t done = nullptr;
  bool in_use = false;
  bool abandoned = false;  ///< its chunk was dropped before it was done
};

/// Where a work list's parts lie in the descriptor arena.
struct WorkOffsets {
  std::size_t rows = 0;
  std::size_t tiles = 0;
  std::size_t segments = 0;
  std::int32_t tile_count = 0;
};

/// A forward pass in flight: sizes, and where its descriptors lie.
struct CudaChunk final : Chunk {
  explicit CudaChunk(ChunkSlot& chunk_slot) : slot(chunk_slot) {}
  ~CudaChunk() override {
    slot.in_use = false;
    slot.abandoned = !waited;
  }

  ChunkSlot& slot;
  std::int32_t rows = 0;     ///< T
  std::int32_t kept = 0;     ///< answer and scored rows
  std::int32_t answers = 0;  ///< A
  std::int32_t scored = 0;   ///< S
  std::int32_t answer_columns = 0;
  bool answers_only = false;  ///< the hidden state holds kept rows
  bool waited = false;
  std::size_t tokens = 0;  ///< offsets in the descriptor arena, as all below
  std::size_t positions = 0;
  std::size_t kept_positions = 0;
  std::size_t kv_slots = 0;
  std::size_t kept_rows = 0;
  std::size_t answer_index = 0;  ///< kept row of each answer
  std::size_t scored_index = 0;  ///< kept row of each scored token
  std::size_t scored_tokens = 0;
  WorkOffsets all_work;
  WorkOffsets kept_work;

  /// Fills the slot's arena for `batch`; attention tiles hold `tile_tokens` rows.
  void Describe(const PrefillBatch& batch, std::int32_t tile_tokens);
  /// Room for the results: [S] log-probabilities, then [A, columns] logits.
  void ReserveResults();

  std::int32_t hidden_rows() const { return answers_only ? kept : rows; }
  std::size_t answer_floats() const {
    return static_cast<std::size_t>(answers) * static_cast<std::size_t>(answer_columns);
  }
};

}  // namespace quail::infer::cuda
