#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

namespace quail::infer::cuda {
namespace {

__device__ float WarpSum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

/// One warp a (row, head row). Bytes: 4C; FLOPs: 2C. The head's few rows stay in the L1 cache.
__global__ void __launch_bounds__(128) answer_logits_kernel(AnswerArguments a) {
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t row = unit / a.n;
  const std::int64_t column = unit % a.n;
  if (row >= a.rows) return;
  const __nv_bfloat16* x = a.x + static_cast<std::int64_t>(a.row_index[row]) * a.columns;
  const __nv_bfloat16* head = a.head + column * a.columns;
  float sum = 0;
  for (int c = lane * kPiece; c < a.columns; c += 32 * kPiece) {
    float left[kPiece];
    float right[kPiece];
    LoadPiece(x + c, left);
    LoadPiece(head + c, right);
#pragma unroll
    for (int i = 0; i < kPiece; ++i) sum = fmaf(left[i], right[i], sum);
  }
  sum = WarpSum(sum);
  if (lane == 0) a.logits[row * a.n + column] = sum;
}

constexpr int kLogProbThreads = 512;

/// One block a row: maximum, then sum of exponentials. Bytes: 8V.
__global__ void __launch_bounds__(kLogProbThreads) log_probs_kernel(LogProbArguments a) {
  __shared__ float shared[kLogProbThreads / 32];
  const float* logits = a.logits + static_cast<std::int64_t>(blockIdx.x) * a.pitch;
  float top = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < a.vocabulary; i += kLogProbThreads)
    top = fmaxf(top, logits[i]);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, offset));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = top;
  __syncthreads();
  for (int i = 0; i < kLogProbThreads / 32; ++i) top = fmaxf(top, shared[i]);
  __syncthreads();
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < a.vocabulary; i += kLogProbThreads)
    sum += expf(logits[i] - top);
  sum = WarpSum(sum);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (int i = 0; i < kLogProbThreads / 32; ++i) total += shared[i];
  a.log_probs[blockIdx.x] = logits[a.targets[blockIdx.x]] - top - logf(total);
}

}  // namespace

void LaunchAnswerLogits(const AnswerArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK_EQ(arguments.columns % kPiece, 0);
  const std::int64_t units = static_cast<std::int64_t>(arguments.rows) * arguments.n;
  if (units == 0) return;
  answer_logits_kernel<<<static_cast<unsigned>((units + 3) / 4), 128, 0, stream>>>(arguments);
  CheckCuda(cudaGetLastError(), "answer_logits_kernel");
}

void LaunchLogProbs(const LogProbArguments& arguments, cudaStream_t stream) {
  if (arguments.rows == 0) return;
  log_probs_kernel<<<static_cast<unsigned>(arguments.rows), kLogProbThreads, 0, stream>>>(
      arguments);
  CheckCuda(cudaGetLastError(), "log_probs_kernel");
}

}  // namespace quail::infer::cuda
