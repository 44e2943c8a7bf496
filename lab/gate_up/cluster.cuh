#pragma once

#include <cstdint>

#include "infer/cuda/hopper.cuh"

/// Blocks of a cluster that load for each other.
namespace quail::infer::cuda::hopper {

/// Arrives at the same barrier of block `rank` of the cluster. It orders what was read from shared
/// memory before what the copy engine writes there afterwards; release at cluster scope, which
/// other memory would need, is a fence of the whole GPU.
__device__ inline void ArriveAt(Barrier& barrier, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(SharedAddress(&barrier.word)),
      "r"(rank)
      : "memory");
}

/// Starts the copy of a box of a matrix into shared memory; its bytes complete on `barrier`.
__device__ inline void CopyBox(void* to, const CUtensorMap* map, Barrier* barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4}], [%2];\n" ::"r"(SharedAddress(to)),
      "l"(map), "r"(SharedAddress(&barrier->word)), "r"(x), "r"(y)
      : "memory");
}

/// The same into the blocks of the cluster that `mask` has bits for: to the same place in each, and
/// completing on the same barrier of each.
__device__ inline void CopyBoxToBlocks(void* to, const CUtensorMap* map, Barrier* barrier, int x,
                                       int y, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;\n" ::"r"(SharedAddress(to)),
      "l"(map), "r"(SharedAddress(&barrier->word)), "r"(x), "r"(y), "h"(mask)
      : "memory");
}

/// Rank of this block in its cluster.
__device__ inline unsigned ClusterRank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}

/// Waits for all threads of all blocks of the cluster.
__device__ inline void ClusterSync() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n" ::
          : "memory");
}

/// The operand that lies `bytes` behind that of `descriptor`.
__device__ inline std::uint64_t Behind(std::uint64_t descriptor, unsigned bytes) {
  return descriptor + (bytes >> 4);
}

}  // namespace quail::infer::cuda::hopper
