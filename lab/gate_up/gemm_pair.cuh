#pragma once

#include <algorithm>
#include <cstdint>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <utility>

#include "base/check.h"
#include "cluster.cuh"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/tensor_map.h"

/// Block-scaled fp8 products whose tile is 128 rows by two blocks of 128 columns that need not be
/// neighbours: gate and up, a key head and its value head. An epilogue gets both blocks of a row in
/// fp32 in one thread's registers, so that what combines them needs no memory. A persistent block a
/// multiprocessor; clusters of two take neighbouring rows, and each of the two loads one column
/// block for both. One warp feeds 4 stages of 128 deep operands; two warpgroups hold 64 rows each
/// and add every 128 products in fp32 with their scales, one column block after the other, so that
/// one group's sums run under the other's products. FLOPs: 2mnk; bytes from L2 a tile and 128 deep:
/// 16 KB of activations and 16 KB of weights for 8.4 MFLOP.
namespace quail::infer::cuda::pair {

constexpr int kBlock = 128;  ///< rows of a tile, columns of a block, and the depth of a stage
constexpr int kStages = 4;
constexpr int kConsumers = 2;
constexpr int kCluster = 2;
constexpr int kThreads = 128 * (1 + kConsumers);
constexpr int kSms = 132;
constexpr int kGroupedPairs = 16;  ///< tile pairs of rows that go through all columns together

/// The two column blocks of a tile.
struct BlockPair {
  int first;
  int second;
};

/// out = epilogue(a [m, k] b [.., k]^T).
struct PairProduct {
  const __nv_fp8_e4m3* a = nullptr;
  const float* a_scales = nullptr;
  std::int64_t a_scale_pitch = 0;
  const __nv_fp8_e4m3* b = nullptr;
  const float* b_scales = nullptr;  ///< [blocks of b's rows, k / 128]
  std::int64_t b_rows = 0;
  std::int32_t m = 0;
  std::int32_t k = 0;
  std::int32_t pairs = 0;  ///< pairs of column blocks
};

struct SharedMemory {
  unsigned char a[kStages][kBlock][kBlock];
  unsigned char b[kStages][2][kBlock][kBlock];
  float scales[kStages][kBlock];
  hopper::Barrier full[kStages];
  hopper::Barrier empty[kStages];
};
constexpr std::size_t kSharedBytes = sizeof(SharedMemory);
static_assert(kSharedBytes <= 232448);
constexpr unsigned kStageBytes = 3 * kBlock * kBlock + kBlock * sizeof(float);

struct Maps {
  CUtensorMap a;
  CUtensorMap a_scales;
  CUtensorMap b;
};

/// Which phase each stage is in. A tile begins at stage 0, whatever the depth of the last one was.
class Phases {
 public:
  __device__ unsigned parity(int stage) const { return parities_ >> stage & 1; }
  __device__ void Used(int stage) { parities_ ^= 1U << stage; }

 private:
  unsigned parities_ = 0;
};

/// What a cluster works on: two neighbouring tiles of rows, one pair of column blocks.
struct Unit {
  int row_pair;
  int column;
};

/// Units that run at a time share rows and columns: a few tiles of rows go through all columns.
__device__ inline Unit UnitAt(int index, int row_pairs, int columns) {
  const int first = index / (kGroupedPairs * columns) * kGroupedPairs;
  const int rows = min(kGroupedPairs, row_pairs - first);
  const int within = index - first * columns;
  return {first + within % rows, within / rows};
}

__device__ inline void InitBarriers(SharedMemory& shared) {
  for (int stage = 0; stage < kStages; ++stage) {
    shared.full[stage].Init(1);
    shared.empty[stage].Init(4 * kConsumers * kCluster);
  }
  hopper::FenceBarrierInit();
}

/// Loads a unit's operands: its own rows, and one column block for both blocks of the cluster.
__device__ inline void Load(const PairProduct& p, const Maps& maps, SharedMemory& shared,
                            Phases& phases, int tile, int column_block, unsigned rank) {
  for (int k = 0; k < p.k / kBlock; ++k) {
    const int stage = k % kStages;
    hopper::Barrier& full = shared.full[stage];
    shared.empty[stage].Wait(phases.parity(stage) ^ 1);
    full.ArriveExpecting(kStageBytes);
    hopper::CopyBox(shared.a[stage], &maps.a, &full, k * kBlock, tile * kBlock);
    hopper::CopyBox(shared.scales[stage], &maps.a_scales, &full, tile * kBlock, k);
    hopper::CopyBoxToBlocks(shared.b[stage][rank], &maps.b, &full, k * kBlock,
                            column_block * kBlock, (1 << kCluster) - 1);
    phases.Used(stage);
  }
}

template <std::size_t... I>
__device__ inline void Multiply(std::uint64_t a, std::uint64_t b, float (&d)[64], bool accumulate,
                                std::index_sequence<I...>) {
  using namespace cute::SM90::GMMA;
  MMA_64x128x32_F32E4M3E4M3_SS_TN<>::fma(a, b, d[I]...,
                                         accumulate ? ScaleOut::One : ScaleOut::Zero);
}

/// One warpgroup: 64 rows of a tile. A thread has two rows, 8 apart, and of each two neighbouring
/// columns of every eight.
class Consumer {
 public:
  __device__ Consumer(const PairProduct& p, SharedMemory& shared, int group)
      : p_(p),
        shared_(shared),
        lane_(static_cast<int>(threadIdx.x % 32)),
        row_(group * 64 + static_cast<int>(threadIdx.x % 128 / 32) * 16 + lane_ / 4),
        a_(hopper::Descriptor(&shared.a[0][group * 64][0], 16, 1024)),
        b_(hopper::Descriptor(&shared.b[0][0][0][0], 16, 1024)) {}

  /// The first of this thread's rows within the tile.
  __device__ int row() const { return row_; }

  /// first, second = the sums over k of this thread's elements of the two column blocks.
  __device__ void Sum(const BlockPair& blocks, float (&first)[64], float (&second)[64]) {
    const int depth = p_.k / kBlock;
    const float* first_scales = p_.b_scales + static_cast<std::int64_t>(blocks.first) * depth;
    const float* second_scales = p_.b_scales + static_cast<std::int64_t>(blocks.second) * depth;
#pragma unroll
    for (int i = 0; i < 64; ++i) first[i] = second[i] = 0;
    Scales scales{0, 0, __ldg(first_scales), __ldg(second_scales)};
    Take(0, scales);
#pragma unroll 1
    for (int k = 0; k < depth; k += kStages) {
      // Unrolled, so that a stage's addresses are constants.
#pragma unroll
      for (int stage = 0; stage < kStages; ++stage) {
        if (k + stage >= depth) break;
        const int ahead = min(k + stage + 1, depth - 1);
        Scales next{0, 0, __ldg(first_scales + ahead), __ldg(second_scales + ahead)};
        float sums[64];
        Start(stage, 0, sums);
        Wait(sums);
        Add(sums, scales.upper * scales.first, scales.lower * scales.first, first);
        Start(stage, 1, sums);
        // The next stage arrives under this one's products.
        if (k + stage + 1 < depth) Take((stage + 1) % kStages, next);
        Wait(sums);
        if (lane_ < kCluster) hopper::ArriveAt(shared_.empty[stage], static_cast<unsigned>(lane_));
        Add(sums, scales.upper * scales.second, scales.lower * scales.second, second);
        scales = next;
      }
    }
  }

 private:
  /// Of one stage: this thread's two rows, and the two column blocks.
  struct Scales {
    float upper;
    float lower;
    float first;
    float second;
  };

  /// Waits for a stage and reads its rows' scales.
  __device__ void Take(int stage, Scales& scales) {
    shared_.full[stage].Wait(phases_.parity(stage));
    phases_.Used(stage);
    scales.upper = shared_.scales[stage][row_];
    scales.lower = shared_.scales[stage][row_ + 8];
  }

  /// Starts sums = a stage's 128 products of column block `which`.
  __device__ void Start(int stage, int which, float (&sums)[64]) const {
    hopper::PinRegisters(sums);
    hopper::FenceRegisters();
#pragma unroll
    for (int k = 0; k < kBlock / 32; ++k) {
      Multiply(hopper::Behind(a_, stage * sizeof(shared_.a[0]) + k * 32),
               hopper::Behind(
                   b_, stage * sizeof(shared_.b[0]) + which * sizeof(shared_.b[0][0]) + k * 32),
               sums, k > 0, std::make_index_sequence<64>{});
    }
    hopper::CommitProducts();
  }

  __device__ static void Wait(float (&sums)[64]) {
    hopper::WaitProducts<0>();
    hopper::PinRegisters(sums);
  }

  __device__ static void Add(const float (&sums)[64], float upper, float lower, float (&to)[64]) {
#pragma unroll
    for (int i = 0; i < 64; ++i) to[i] = fmaf(sums[i], i / 2 % 2 == 0 ? upper : lower, to[i]);
  }

  const PairProduct& p_;
  SharedMemory& shared_;
  const int lane_;
  const int row_;
  const std::uint64_t a_;  ///< descriptors of the first stage
  const std::uint64_t b_;
  Phases phases_;
};

/// Epilogue: `BlockPair Blocks(int column)`, and `void Finish(int column, int row, float (&)[64],
/// float (&)[64])` for the thread's rows `row` and `row` + 8 of the product, which all threads call
/// together, also for rows that are not there.
template <typename Epilogue>
__global__ void __launch_bounds__(kThreads, 1)
    pair_kernel(const __grid_constant__ PairProduct p, const __grid_constant__ Maps maps,
                const __grid_constant__ Epilogue epilogue) {
  extern __shared__ __align__(1024) unsigned char raw[];  // what the swizzle needs
  auto& shared = *reinterpret_cast<SharedMemory*>(raw);
  if (threadIdx.x == 0) InitBarriers(shared);
  hopper::ClusterSync();
  const unsigned rank = hopper::ClusterRank();
  const int row_pairs = (p.m + kCluster * kBlock - 1) / (kCluster * kBlock);
  const int units = row_pairs * p.pairs;
  const int clusters = static_cast<int>(gridDim.x) / kCluster;
  const int cluster = static_cast<int>(blockIdx.x) / kCluster;
  if (threadIdx.x < 128) {
    hopper::ShrinkRegisters<40>();
    if (threadIdx.x == 0) {
      Phases phases;
      for (int i = cluster; i < units; i += clusters) {
        const Unit unit = UnitAt(i, row_pairs, p.pairs);
        const BlockPair blocks = epilogue.Blocks(unit.column);
        Load(p, maps, shared, phases, unit.row_pair * kCluster + static_cast<int>(rank),
             rank == 0 ? blocks.first : blocks.second, rank);
      }
    }
    __syncwarp();
  } else {
    hopper::GrowRegisters<232>();
    // One value a warp, so that descriptors are computed in uniform registers.
    const int group = __shfl_sync(0xffffffff, static_cast<int>(threadIdx.x / 128) - 1, 0);
    Consumer consumer(p, shared, group);
    for (int i = cluster; i < units; i += clusters) {
      const Unit unit = UnitAt(i, row_pairs, p.pairs);
      float first[64];
      float second[64];
      consumer.Sum(epilogue.Blocks(unit.column), first, second);
      const int tile = unit.row_pair * kCluster + static_cast<int>(rank);
      epilogue.Finish(unit.column, tile * kBlock + consumer.row(), first, second);
    }
  }
  // No block of a cluster may leave while the other still writes to it.
  hopper::ClusterSync();
}

template <typename Epilogue>
void LaunchPair(const PairProduct& p, const Epilogue& epilogue, cudaStream_t stream) {
  if (p.m == 0) return;
  QUAIL_CHECK_EQ(p.k % kBlock, 0);
  static const cudaError_t configured = cudaFuncSetAttribute(
      pair_kernel<Epilogue>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  CheckCuda(configured, "pair_kernel's shared memory");
  Maps maps;
  maps.a = ByteMatrixMap(p.a, p.m, p.k, kBlock);
  maps.a_scales = ScalesMap(p.a_scales, p.m, p.k / kBlock, p.a_scale_pitch, kBlock);
  maps.b = ByteMatrixMap(p.b, p.b_rows, p.k, kBlock);
  const std::int64_t row_pairs = (std::int64_t{p.m} + kCluster * kBlock - 1) / (kCluster * kBlock);
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim =
      dim3(static_cast<unsigned>(std::min<std::int64_t>(row_pairs * p.pairs * kCluster, kSms)));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  CheckCuda(cudaLaunchKernelEx(&config, pair_kernel<Epilogue>, p, maps, epilogue), "pair_kernel");
}

}  // namespace quail::infer::cuda::pair
