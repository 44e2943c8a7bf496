#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "infer/cuda/attention_select.h"
#include "infer/cuda/hopper.cuh"
#include "infer/cuda/launch.h"

/// What producer and consumers of attention_wgmma.cu share: the layout of shared memory, and the
/// order in which a tile's keys pass through it.
namespace quail::infer::cuda::wgmma {

constexpr int D = kWgmmaHeadDim;
constexpr int kRows = kAttentionTileRows;
constexpr int kHalf = 64;
constexpr int kKeys = 2 * kHalf;
constexpr int kStages = 3;
constexpr int kConsumers = 2;
constexpr int kColumnBlock = 64;  ///< bf16 elements of one swizzled 128-byte row
constexpr unsigned kTileBytes = kKeys * D * 2;
constexpr int kMostTokens = 64;  ///< of a tile: 128 rows over groups of at least 2

static_assert(kRows == 64 * kConsumers);

/// Up to 64 keys of one segment, as the consumers mask them.
struct HalfPiece {
  std::int32_t first_key = 0;  ///< chunk row of the first key; read where `own_run`
  std::uint8_t keys = 0;       ///< 0: nothing, everything masked
  std::uint8_t row_begin = 0;  ///< tile rows [row_begin, row_end) see the keys
  std::uint8_t row_end = 0;
  std::uint8_t flags = 0;

  static constexpr std::uint8_t kOwnRun = 1;  ///< a row sees its run's first key to its own only
  static constexpr std::uint8_t kWhole = 2;   ///< every row sees every key: nothing to mask
  static constexpr std::uint8_t kLast = 4;    ///< of the tile's last piece (second half only)

  __device__ bool Has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

/// Keys in two halves, each from any segment.
struct alignas(16) Piece {
  HalfPiece halves[2];

  __device__ bool last() const { return halves[1].Has(HalfPiece::kLast); }
};
static_assert(sizeof(Piece) == sizeof(uint4));

/// The tile whose queries are in shared memory.
struct TileRows {
  QueryRow rows[kMostTokens];
  std::int32_t first_row;
  std::int32_t count;
};

struct SharedMemory {
  __nv_bfloat16 queries[2][kRows][kColumnBlock];  ///< [column block][row][64]
  __nv_bfloat16 keys[kStages][2][kKeys][kColumnBlock];
  __nv_bfloat16 values[kStages][2][kKeys][kColumnBlock];
  Piece pieces[kStages];  ///< belong to the keys
  TileRows tile;          ///< belongs to the queries
  hopper::Barrier queries_full;
  hopper::Barrier queries_empty;
  hopper::Barrier keys_full[kStages];
  hopper::Barrier keys_empty[kStages];
  hopper::Barrier values_full[kStages];
  hopper::Barrier values_empty[kStages];
};
// Aligned by hand to the swizzle's 1024 bytes.
constexpr std::size_t kSharedBytes = sizeof(SharedMemory) + 1024;
static_assert(kSharedBytes <= 232448);

struct Maps {
  CUtensorMap queries;
  CUtensorMap chunk_k, chunk_v;
  CUtensorMap arena_k, arena_v;
};

/// Position in a ring of kStages buffers, with the parity of the phase.
struct RingPosition {
  int stage = 0;
  unsigned parity = 0;

  __device__ void Advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

__device__ inline void InitBarriers(SharedMemory& shared) {
  constexpr unsigned kConsumerWarps = 4 * kConsumers;
  shared.queries_full.Init(32);
  shared.queries_empty.Init(32 * kConsumerWarps);
  for (int stage = 0; stage < kStages; ++stage) {
    shared.keys_full[stage].Init(1);
    shared.keys_empty[stage].Init(kConsumerWarps);
    shared.values_full[stage].Init(1);
    shared.values_empty[stage].Init(kConsumerWarps);
  }
  hopper::FenceBarrierInit();
}

}  // namespace quail::infer::cuda::wgmma
