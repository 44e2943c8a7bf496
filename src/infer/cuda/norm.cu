#include <type_traits>

#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

/// Residual, RMS norm and quantisation in one pass: one block a row, every element read and written
/// once. Bytes a row: AddNorm 2C (delta) + 2C + 2C (residual in, out) + C (fp8) or 2C (bf16).
/// FLOPs: about 6C.
namespace quail::infer::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMaxPieces = 8;  ///< pieces a thread: rows of up to 8 * 128 * 8 = 8192 columns

/// Sum over the block. `shared`: [kThreads / 32].
__device__ float BlockSum(float value, float* shared) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffff, value, offset);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) sum += shared[i];
  return sum;
}

struct RowNorm {
  const __nv_bfloat16* norm_weight;
  __nv_bfloat16* residual;
  Activation out;
  int columns;
  float epsilon;
  BlockScale rounding;
};

/// `added`: the row to add to the residual, or with kReplace the row that becomes the residual.
/// kPieces: pieces a thread. All loads are started before the first store, which they could not
/// pass.
template <int kPieces, bool kReplace>
__device__ void NormRow(const RowNorm& norm, std::int64_t row, const __nv_bfloat16* added) {
  __shared__ float shared[kThreads / 32];
  float values[kPieces][kPiece] = {};
  float old[kPieces][kPiece] = {};
  __nv_bfloat16* residual = norm.residual + row * norm.columns;
  const auto column_of = [](int p) {
    return (p * kThreads + static_cast<int>(threadIdx.x)) * kPiece;
  };
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    if (column_of(p) >= norm.columns) continue;
    LoadPiece(added + column_of(p), values[p]);
    if constexpr (!kReplace) LoadPiece(residual + column_of(p), old[p]);
  }
  float squares = 0;
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      values[p][i] += old[p][i];
      squares += values[p][i] * values[p][i];
    }
    if (column_of(p) < norm.columns) StorePiece(residual + column_of(p), values[p]);
  }
  const float mean = BlockSum(squares, shared) / static_cast<float>(norm.columns);
  const float factor = rsqrtf(mean + norm.epsilon);
#pragma unroll
  for (int p = 0; p < kPieces; ++p) {
    // Whole warps leave together: StoreActivation shuffles.
    if (column_of(p) - static_cast<int>(threadIdx.x % 32) * kPiece >= norm.columns) continue;
    const bool active = column_of(p) < norm.columns;
    if (active) {
      float weight[kPiece];
      LoadPiece(norm.norm_weight + column_of(p), weight);
#pragma unroll
      for (int i = 0; i < kPiece; ++i) values[p][i] *= factor * weight[i];
    }
    StoreActivation(norm.out, row, norm.columns, column_of(p), values[p], active, norm.rounding);
  }
}

template <int kPieces>
__global__ void __launch_bounds__(kThreads) embed_norm_kernel(EmbedArguments a) {
  const std::int64_t row = blockIdx.x;
  const RowNorm norm{a.norm_weight, a.residual, a.out, a.columns, a.epsilon, a.rounding};
  NormRow<kPieces, true>(norm, row, a.table + static_cast<std::int64_t>(a.tokens[row]) * a.columns);
}

template <int kPieces>
__global__ void __launch_bounds__(kThreads) add_norm_kernel(NormArguments a) {
  const std::int64_t row = blockIdx.x;
  const RowNorm norm{a.norm_weight, a.residual, a.out, a.columns, a.epsilon, a.rounding};
  NormRow<kPieces, false>(norm, row, a.delta + row * a.columns);
}

/// Calls `launch` with the pieces a thread that cover `columns`, as a constant.
template <typename Launch>
void WithPieces(int columns, const Activation& out, const Launch& launch) {
  QUAIL_CHECK_EQ(columns % kPiece, 0);
  QUAIL_CHECK_LE(columns, kMaxPieces * kThreads * kPiece);
  QUAIL_CHECK(out.fp8 == nullptr || columns % 128 == 0);
  const int pieces = (columns + kThreads * kPiece - 1) / (kThreads * kPiece);
  if (pieces <= 1) return launch(std::integral_constant<int, 1>{});
  if (pieces == 2) return launch(std::integral_constant<int, 2>{});
  if (pieces == 3) return launch(std::integral_constant<int, 3>{});  // 2,560 columns: Qwen3-4B
  if (pieces == 4) return launch(std::integral_constant<int, 4>{});
  launch(std::integral_constant<int, kMaxPieces>{});
}

}  // namespace

void LaunchEmbed(const EmbedArguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return;
  WithPieces(arguments.columns, arguments.out, [&](auto pieces) {
    embed_norm_kernel<decltype(pieces)::value>
        <<<static_cast<unsigned>(arguments.rows), kThreads, 0, stream>>>(arguments);
  });
  CheckCuda(cudaGetLastError(), "embed_norm_kernel");
}

void LaunchAddNorm(const NormArguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return;
  WithPieces(arguments.columns, arguments.out, [&](auto pieces) {
    add_norm_kernel<decltype(pieces)::value>
        <<<static_cast<unsigned>(arguments.rows), kThreads, 0, stream>>>(arguments);
  });
  CheckCuda(cudaGetLastError(), "add_norm_kernel");
}

}  // namespace quail::infer::cuda
