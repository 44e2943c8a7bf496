#pragma once

#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <cstdint>
#include <memory>

#include "infer/cuda/gemm_select.h"

namespace quail::infer::cuda {

/// out [m, n] = a [m, k] b [n, k]^T in bf16 with fp32 accumulation, by cuBLAS. `out_stride`:
/// elements between rows.
struct Bf16GemmArguments {
  const __nv_bfloat16* a = nullptr;
  const __nv_bfloat16* b = nullptr;
  void* out = nullptr;  ///< bf16, or fp32 where `fp32_out`
  std::int64_t out_stride = 0;
  GemmShape shape;
  bool fp32_out = false;
};

/// A cuBLAS handle on one stream with a workspace of its own, so that equal calls give equal bits.
class Bf16Gemm {
 public:
  /// Throws Error{kDevice} when cuBLAS cannot start.
  explicit Bf16Gemm(cudaStream_t stream);
  ~Bf16Gemm();
  Bf16Gemm(const Bf16Gemm&) = delete;
  Bf16Gemm& operator=(const Bf16Gemm&) = delete;

  void Launch(const Bf16GemmArguments& arguments) const;

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace quail::infer::cuda
