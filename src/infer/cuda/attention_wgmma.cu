#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "infer/cuda/attention_consumer.cuh"
#include "infer/cuda/attention_pipeline.cuh"
#include "infer/cuda/attention_producer.cuh"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/tensor_map.h"

/// Attention for heads of size 128 on Hopper's tensor cores: the same one-pass online softmax over
/// key segments as attention.cu, in the form of FlashAttention-3 (Shah et al., arXiv 2407.08608,
/// sections 3.1 and 3.2). A persistent block serves one (tile, KV head) after another: a producer
/// warp feeds queries, keys and values through the copy engine; two consumer warpgroups hold 64
/// query rows each, start the next scores before they soften the present ones, and take turns at
/// the tensor cores. Query rows are (token, head of the group) pairs, 128 a tile. Keys come in
/// pieces of two halves of 64, each from any segment, so that the end of an anchor and a suffix's
/// own keys share a piece. Grid: one block an SM; 384 threads; 224 KB of shared memory (queries 32,
/// three stages of keys and values 64 each). FLOPs: 4 * 128 * 128 a key; bytes from L2: 512 a key
/// and block.
namespace quail::infer::cuda {
namespace {

using namespace wgmma;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 128 * (1 + kConsumers);

template <int G>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionArguments a,
                           const __grid_constant__ Maps maps) {
  extern __shared__ unsigned char raw[];
  auto& shared = *reinterpret_cast<SharedMemory*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) /
                                                  1024 * 1024);
  if (threadIdx.x == 0) InitBarriers(shared);
  __syncthreads();
  const int units = a.tile_count * a.kv_heads;
  if (threadIdx.x < 128) {
    hopper::ShrinkRegisters<40>();
    if (threadIdx.x >= 32) return;
    Producer<G> producer(a, maps, shared);
    for (int unit = static_cast<int>(blockIdx.x); unit < units;
         unit += static_cast<int>(gridDim.x)) {
      producer.Serve(a.tiles[unit / a.kv_heads], unit % a.kv_heads);
    }
  } else {
    hopper::GrowRegisters<232>();
    const int group = static_cast<int>(threadIdx.x / 128) - 1;
    // The first turn is the first group's.
    if (group == 1) hopper::NamedArrive(1, 256);
    Consumer<G> consumer(a, shared, group);
    for (int unit = static_cast<int>(blockIdx.x); unit < units;
         unit += static_cast<int>(gridDim.x)) {
      consumer.Serve(unit % a.kv_heads);
    }
  }
}

/// [rows][heads][128] with `stride` elements between rows, read 64 columns, `box_heads` heads and
/// `box_rows` rows at once.
CUtensorMap HeadsMap(const __nv_bfloat16* data, std::int64_t stride, std::int64_t heads,
                     std::int64_t rows, int box_heads, int box_rows) {
  return EncodeTensorMap(
      {data,
       CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
       3,
       {D, static_cast<std::uint64_t>(heads), static_cast<std::uint64_t>(rows)},
       {D * 2, static_cast<std::uint64_t>(stride) * 2},
       {kColumnBlock, static_cast<std::uint32_t>(box_heads), static_cast<std::uint32_t>(box_rows)},
       CU_TENSOR_MAP_SWIZZLE_128B});
}

template <int G>
void Launch(const AttentionArguments& a, cudaStream_t stream) {
  static const cudaError_t configured = cudaFuncSetAttribute(
      attention_wgmma_kernel<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  CheckCuda(configured, "attention_wgmma_kernel's shared memory");
  Maps maps;
  maps.queries = HeadsMap(a.q, a.q_stride, a.heads, a.query_rows, G, kRows / G);
  maps.chunk_k = HeadsMap(a.chunk_k, a.kv_stride, a.kv_heads, a.chunk_rows, 1, kHalf);
  maps.chunk_v = HeadsMap(a.chunk_v, a.kv_stride, a.kv_heads, a.chunk_rows, 1, kHalf);
  if (a.arena_slots > 0) {
    const std::int64_t stride = std::int64_t{a.kv_heads} * D;
    maps.arena_k = HeadsMap(a.arena_k, stride, a.kv_heads, a.arena_slots, 1, kHalf);
    maps.arena_v = HeadsMap(a.arena_v, stride, a.kv_heads, a.arena_slots, 1, kHalf);
  } else {
    maps.arena_k = maps.chunk_k;
    maps.arena_v = maps.chunk_v;
  }
  const int blocks = std::min(a.tile_count * a.kv_heads, 132);
  attention_wgmma_kernel<G>
      <<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(a, maps);
  CheckCuda(cudaGetLastError(), "attention_wgmma_kernel");
}

template <std::size_t... I>
void LaunchGroup(const AttentionArguments& a, cudaStream_t stream, std::index_sequence<I...>) {
  const std::int32_t group = a.heads / a.kv_heads;
  const bool launched =
      ((group == kWgmmaGroups[I] && (Launch<kWgmmaGroups[I]>(a, stream), true)) || ...);
  QUAIL_CHECK(launched);
}

}  // namespace

void LaunchAttentionWgmma(const AttentionArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK_EQ(arguments.head_dim, D);
  LaunchGroup(arguments, stream, std::make_index_sequence<std::size(kWgmmaGroups)>{});
}

}  // namespace quail::infer::cuda
