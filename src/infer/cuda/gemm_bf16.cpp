#include "infer/cuda/gemm_bf16.h"

#include <fmt/format.h>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cuda {

Bf16Gemm::Bf16Gemm(cudaStream_t stream) {
  const cublasStatus_t status = cublasCreate(&handle_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw Error(ErrorCode::kDevice,
                fmt::format("cuBLAS does not start: {}", cublasGetStatusString(status)));
  }
  QUAIL_CHECK_EQ(static_cast<int>(cublasSetStream(handle_, stream)), 0);
}

Bf16Gemm::~Bf16Gemm() {
  if (handle_ != nullptr) cublasDestroy(handle_);
}

void Bf16Gemm::Launch(const Bf16GemmArguments& arguments) const {
  const GemmShape& shape = arguments.shape;
  if (shape.m == 0) return;
  const float one = 1.0f;
  const float zero = 0.0f;
  // Row-major out = a b^T is, in cuBLAS's column-major view, out^T = b a^T.
  const cublasStatus_t status = cublasGemmEx(
      handle_, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(shape.n), static_cast<int>(shape.m),
      static_cast<int>(shape.k), &one, arguments.b, CUDA_R_16BF, static_cast<int>(shape.k),
      arguments.a, CUDA_R_16BF, static_cast<int>(shape.k), &zero, arguments.out,
      arguments.fp32_out ? CUDA_R_32F : CUDA_R_16BF, static_cast<int>(arguments.out_stride),
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  QUAIL_CHECK_MSG(status == CUBLAS_STATUS_SUCCESS, "cublasGemmEx {} x {} x {}: {}", shape.m,
                  shape.n, shape.k, cublasGetStatusString(status));
}

}  // namespace quail::infer::cuda
