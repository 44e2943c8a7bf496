#pragma once

#include <cuda.h>

#include <cstdint>

/// Hopper's asynchronous parts in plain words: barriers in shared memory, the copy engine, the
/// tensor cores' descriptors.
namespace quail::infer::cuda::hopper {

__device__ inline unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// A transaction barrier (mbarrier). Waiters pass the parity of the phase they wait for.
struct Barrier {
  std::uint64_t word;

  __device__ void Init(unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(SharedAddress(&word)),
                 "r"(arrivals));
  }
  __device__ void Arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(SharedAddress(&word))
                 : "memory");
  }
  __device__ void ArriveExpecting(unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(SharedAddress(&word)),
        "r"(bytes)
        : "memory");
  }
  __device__ void Wait(unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\n"
        "bra again;\n"
        "over:\n"
        "}\n" ::"r"(SharedAddress(&word)),
        "r"(parity)
        : "memory");
  }
};

/// Makes barrier initialisation visible to the copy engine.
__device__ inline void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

/// Starts the copy of a three-dimensional box into shared memory; its bytes complete on `barrier`.
__device__ inline void CopyBox(void* to, const CUtensorMap* map, Barrier* barrier, int x, int y,
                               int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
      "%4, %5}], "
      "[%2];\n" ::"r"(SharedAddress(to)),
      "l"(map), "r"(SharedAddress(&barrier->word)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// A matrix operand in shared memory with 128-byte swizzle. `leading` and `stride` are byte
/// offsets: K-major, stride between groups of 8 rows (leading unused); MN-major, leading between
/// blocks of 64 columns, stride between groups of 8 rows of K.
__device__ inline std::uint64_t Descriptor(const void* start, unsigned leading, unsigned stride) {
  const std::uint64_t address = SharedAddress(start);
  return ((address & 0x3FFFF) >> 4) | (static_cast<std::uint64_t>(leading >> 4) << 16) |
         (static_cast<std::uint64_t>(stride >> 4) << 32) | (std::uint64_t{1} << 62);
}

__device__ inline void FenceRegisters() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int kPending>
__device__ inline void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving accumulator accesses over an asynchronous product.
template <int N>
__device__ inline void PinRegisters(float (&values)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

template <int kRegisters>
__device__ inline void GrowRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ inline void ShrinkRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
}

/// Named barriers between warps of a block: `threads` in all arrive or wait.
__device__ inline void NamedWait(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void NamedArrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace quail::infer::cuda::hopper
