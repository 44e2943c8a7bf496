#define QUAIL_CPU_LANES 16
#include "infer/cpu/cpu_kernels_impl.h"

namespace quail::infer::cpu {

const CpuKernels& Avx512Kernels() {
  static constexpr CpuKernels kKernels = MakeKernels(Isa::kAvx512, "avx512");
  return kKernels;
}

}  // namespace quail::infer::cpu
