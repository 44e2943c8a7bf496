#define QUAIL_CPU_LANES 4
#include "infer/cpu/cpu_kernels_impl.h"

namespace quail::infer::cpu {

const CpuKernels& BaselineKernels() {
  static constexpr CpuKernels kKernels = MakeKernels(Isa::kBaseline, "baseline");
  return kKernels;
}

}  // namespace quail::infer::cpu
