#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

namespace quail::infer::cuda {
namespace {

constexpr int kThreads = 128;

/// One piece of 8 columns a thread; grid (ceil(F / 1024), rows). Bytes a row: 4F in, F (fp8) or 2F
/// (bf16) out.
__global__ void __launch_bounds__(kThreads) swiglu_kernel(SwiGluArguments a) {
  const std::int64_t row = blockIdx.y;
  const int column =
      (static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) * kPiece;
  const bool active = column < a.columns;
  float inner[kPiece] = {};
  if (active) {
    const __nv_bfloat16* gate = a.gate_up + row * 2 * a.columns + column;
    float up[kPiece];
    LoadPiece(gate, inner);
    LoadPiece(gate + a.columns, up);
#pragma unroll
    for (int i = 0; i < kPiece; ++i) inner[i] = inner[i] / (1.0f + __expf(-inner[i])) * up[i];
  }
  StoreActivation(a.inner, row, a.columns, column, inner, active, a.rounding);
}

/// One block a row. Bytes: every kept row read and written once.
__global__ void __launch_bounds__(kThreads) gather_kernel(GatherArguments a) {
  const std::int64_t to = blockIdx.x;
  const std::int64_t from = a.row_index[to];
  const int pieces = a.columns / kPiece;
  for (int p = static_cast<int>(threadIdx.x); p < pieces; p += kThreads) {
    const int column = p * kPiece;
    const auto copy = [&](const __nv_bfloat16* in, __nv_bfloat16* out) {
      *reinterpret_cast<uint4*>(out + to * a.columns + column) =
          *reinterpret_cast<const uint4*>(in + from * a.columns + column);
    };
    copy(a.residual, a.residual_out);
    if (a.in.bf16 != nullptr) copy(a.in.bf16, a.out.bf16);
    if (a.in.fp8 != nullptr) {
      *reinterpret_cast<uint2*>(a.out.fp8 + to * a.columns + column) =
          *reinterpret_cast<const uint2*>(a.in.fp8 + from * a.columns + column);
    }
  }
  if (a.in.fp8 == nullptr) return;
  for (int block = static_cast<int>(threadIdx.x); block < a.columns / 128; block += kThreads) {
    a.out.scales[block * a.out.scale_pitch + to] = a.in.scales[block * a.in.scale_pitch + from];
  }
}

}  // namespace

void LaunchSwiGlu(const SwiGluArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK_EQ(arguments.columns % kPiece, 0);
  QUAIL_CHECK(arguments.inner.fp8 == nullptr || arguments.columns % 128 == 0);
  constexpr int kRowsPerLaunch = 65535;
  const auto blocks =
      static_cast<unsigned>((arguments.columns + kThreads * kPiece - 1) / (kThreads * kPiece));
  for (std::int32_t first = 0; first < arguments.rows; first += kRowsPerLaunch) {
    SwiGluArguments part = arguments;
    part.rows = min(kRowsPerLaunch, arguments.rows - first);
    part.gate_up += static_cast<std::int64_t>(first) * 2 * arguments.columns;
    if (part.inner.bf16 != nullptr)
      part.inner.bf16 += static_cast<std::int64_t>(first) * arguments.columns;
    if (part.inner.fp8 != nullptr) {
      part.inner.fp8 += static_cast<std::int64_t>(first) * arguments.columns;
      part.inner.scales += first;
    }
    swiglu_kernel<<<dim3(blocks, static_cast<unsigned>(part.rows)), kThreads, 0, stream>>>(part);
    CheckCuda(cudaGetLastError(), "swiglu_kernel");
  }
}

void LaunchGather(const GatherArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK_EQ(arguments.columns % kPiece, 0);
  if (arguments.rows == 0) return;
  gather_kernel<<<static_cast<unsigned>(arguments.rows), kThreads, 0, stream>>>(arguments);
  CheckCuda(cudaGetLastError(), "gather_kernel");
}

}  // namespace quail::infer::cuda
