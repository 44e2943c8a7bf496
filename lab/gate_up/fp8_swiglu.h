#pragma once

#include <cstdint>

#include "infer/cuda/launch.h"

namespace quail::infer::cuda {

/// inner [rows, F] = silu(x Wg^T) * (x Wu^T) for block-scaled fp8, in one kernel. The scales of
/// `inner` are written while other blocks still read those of `x`: they must not share memory.
struct Fp8SwiGluArguments {
  const __nv_fp8_e4m3* x = nullptr;  ///< [rows, depth]
  const float* x_scales = nullptr;
  std::int64_t x_scale_pitch = 0;
  const __nv_fp8_e4m3* gate_up = nullptr;  ///< [2F, depth], gate first
  const float* gate_up_scales = nullptr;   ///< [2F / 128, depth / 128]
  Activation inner;                        ///< fp8
  std::int32_t rows = 0;
  std::int32_t columns = 0;  ///< F, a multiple of 128
  std::int32_t depth = 0;    ///< C, a multiple of 128
  BlockScale rounding = BlockScale::kExact;
};
void LaunchFp8SwiGlu(const Fp8SwiGluArguments& arguments, cudaStream_t stream);

}  // namespace quail::infer::cuda
