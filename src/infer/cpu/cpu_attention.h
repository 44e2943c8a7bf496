#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infer/cpu/bf16_kernels.h"
#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_linear.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/cpu/int8_attention.h"
#include "infer/cpu/kv_memory.h"
#include "infer/prefill_batch.h"

namespace quail::infer::cpu {

/// Queries of one run in a tile.
struct AttentionPart {
  std::int32_t run = 0;
  std::int32_t first_query = 0;  ///< index into the active rows
  std::int32_t queries = 0;
};

/// Queries that are worked on together: their first `shared_blocks` key blocks are the same keys.
struct AttentionTile {
  std::int32_t first_part = 0;
  std::int32_t parts = 0;
  std::int32_t first_query = 0;
  std::int32_t queries = 0;
  std::int32_t shared_blocks = 0;
};

struct AttentionPlan {
  std::vector<AttentionPart> parts;
  std::vector<AttentionTile> tiles;
};

/// Cuts the active rows (ascending) into tiles of at most `max_queries`, joining neighbouring runs
/// that begin with the same key spans so that a shared anchor is read once for all of them.
AttentionPlan PlanAttention(std::span<const Run> runs, std::span<const KeySpan> spans,
                            std::span<const std::int32_t> active_rows, std::int32_t max_queries);

/// One tile for the query heads of one kv head.
struct AttentionTask {
  std::size_t tile = 0;
  std::int32_t kv_head = 0;
};

/// One layer of a chunk. E is `type`.
struct AttentionInputs {
  std::span<const Run> runs;
  std::span<const KeySpan> spans;
  std::span<const std::int32_t> active_rows;
  const float* queries = nullptr;         ///< f32 [active rows, H * D], rotated
  const std::byte* chunk_keys = nullptr;  ///< E [K, chunk_rows, D]
  const std::byte* chunk_values = nullptr;
  std::int64_t chunk_rows = 0;
  const KvMemory* arena = nullptr;
  std::int32_t layer = 0;
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  ElementType type = ElementType::kF32;
  const Bf16Kernels* bf16 = nullptr;    ///< where `type` is kBf16
  const Int8Attention* int8 = nullptr;  ///< instead of those of `bf16`, or nullptr
  std::byte* output = nullptr;          ///< E [active rows, H * D]
};

/// softmax(Q K^T / sqrt(D)) V of one task: running softmax over blocks of 64 keys
/// (Dao et al. 2022) with f32 sums. Blocks are cut by key position in the path, wherever the keys
/// lie, so that a row's result is the same bits for any packing.
void AttendTile(const CpuKernels& kernels, const AttentionInputs& inputs, const AttentionPlan& plan,
                const AttentionTask& task, WorkerScratch& scratch);

}  // namespace quail::infer::cpu
