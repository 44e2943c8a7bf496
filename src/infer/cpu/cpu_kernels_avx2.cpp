#define QUAIL_CPU_LANES 8
#include "infer/cpu/cpu_kernels_impl.h"

namespace quail::infer::cpu {

const CpuKernels& Avx2Kernels() {
  static constexpr CpuKernels kKernels = MakeKernels(Isa::kAvx2, "avx2");
  return kKernels;
}

}  // namespace quail::infer::cpu
