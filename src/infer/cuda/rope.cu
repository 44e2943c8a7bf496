#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"

/// Bias, head norm, rotation and KV placement: one warp a (row, head), every lane of it holds the
/// pairs (i, i + D/2) that rotate together, so that no lane of a head is left out whatever its size
/// (case 56). Bytes a (row, head): 2D in, 2D out, 2D more for kept keys and values.
namespace quail::infer::cuda {
namespace {

constexpr int kWarps = 4;

__device__ float WarpSum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

/// A head's pairs, kPairs a lane: low[p] is element lane + 32 p, high[p] is D/2 further.
template <int kPairs>
struct HeadValues {
  float low[kPairs];
  float high[kPairs];
};

template <int D, int kPairs = D / 64>
__device__ HeadValues<kPairs> LoadHead(const __nv_bfloat16* head, const __nv_bfloat16* bias,
                                       int lane) {
  HeadValues<kPairs> values;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    const int i = lane + 32 * p;
    values.low[p] = __bfloat162float(head[i]);
    values.high[p] = __bfloat162float(head[i + D / 2]);
    if (bias != nullptr) {
      values.low[p] += __bfloat162float(bias[i]);
      values.high[p] += __bfloat162float(bias[i + D / 2]);
    }
  }
  return values;
}

template <int D, int kPairs = D / 64>
__device__ void StoreHead(const HeadValues<kPairs>& values, __nv_bfloat16* head, int lane) {
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    head[lane + 32 * p] = __float2bfloat16(values.low[p]);
    head[lane + 32 * p + D / 2] = __float2bfloat16(values.high[p]);
  }
}

template <int D, int kPairs = D / 64>
__device__ void NormHead(HeadValues<kPairs>& values, const __nv_bfloat16* weight, float epsilon,
                         int lane) {
  float squares = 0;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    squares += values.low[p] * values.low[p] + values.high[p] * values.high[p];
  }
  const float factor = rsqrtf(WarpSum(squares) / D + epsilon);
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    values.low[p] *= factor * __bfloat162float(weight[lane + 32 * p]);
    values.high[p] *= factor * __bfloat162float(weight[lane + 32 * p + D / 2]);
  }
}

template <int D, int kPairs = D / 64>
__device__ void RotateHead(HeadValues<kPairs>& values, const float2* rotation, int lane) {
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    const float2 turn = rotation[lane + 32 * p];
    const float low = values.low[p];
    const float high = values.high[p];
    values.low[p] = low * turn.x - high * turn.y;
    values.high[p] = high * turn.x + low * turn.y;
  }
}

/// Zeroes what is not finite; true when anything was, on all lanes.
template <int kPairs>
__device__ bool ClearNonFinite(HeadValues<kPairs>& values) {
  bool bad = false;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    // A value beyond bf16's range becomes infinite when it is stored.
    if (!(fabsf(values.low[p]) < 3.38e38f)) bad = true, values.low[p] = 0;
    if (!(fabsf(values.high[p]) < 3.38e38f)) bad = true, values.high[p] = 0;
  }
  return __any_sync(0xffffffff, bad);
}

template <int D>
__global__ void __launch_bounds__(kWarps * 32) rope_kernel(RopeArguments a) {
  constexpr int kPairs = D / 64;
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int heads = a.q_heads + a.k_heads;  // a key's warp also places its value head
  const std::int64_t row = unit / heads;
  const int head = static_cast<int>(unit % heads);
  if (row >= a.rows) return;
  const auto bias_of = [&](int h) { return a.bias == nullptr ? nullptr : a.bias + h * D; };
  const float2* rotation = a.rotation + static_cast<std::int64_t>(a.positions[row]) * (D / 2);
  __nv_bfloat16* at = a.heads + row * a.row_stride + head * D;
  HeadValues<kPairs> values = LoadHead<D>(at, bias_of(head), lane);
  if (head < a.q_heads) {
    if (a.q_norm != nullptr) NormHead<D>(values, a.q_norm, a.epsilon, lane);
    RotateHead<D>(values, rotation, lane);
    StoreHead<D>(values, at, lane);
    return;
  }
  if (a.k_norm != nullptr) NormHead<D>(values, a.k_norm, a.epsilon, lane);
  RotateHead<D>(values, rotation, lane);
  __nv_bfloat16* value_at = at + a.k_heads * D;
  HeadValues<kPairs> value = LoadHead<D>(value_at, bias_of(head + a.k_heads), lane);
  if (ClearNonFinite(value)) {
#pragma unroll
    for (int p = 0; p < kPairs; ++p) values.low[p] = values.high[p] = __int_as_float(0x7fffffff);
  }
  StoreHead<D>(values, at, lane);
  StoreHead<D>(value, value_at, lane);
  if (a.kv_slots == nullptr || a.kv_slots[row] < 0) return;
  const std::int64_t slot = (a.kv_slots[row] * a.k_heads + (head - a.q_heads)) * D;
  StoreHead<D>(values, a.arena_k + slot, lane);
  StoreHead<D>(value, a.arena_v + slot, lane);
}

}  // namespace

void LaunchRope(const RopeArguments& arguments, cudaStream_t stream) {
  const std::int64_t units =
      static_cast<std::int64_t>(arguments.rows) * (arguments.q_heads + arguments.k_heads);
  if (units == 0) return;
  const auto blocks = static_cast<unsigned>((units + kWarps - 1) / kWarps);
  if (arguments.head_dim == 128) {
    rope_kernel<128><<<blocks, kWarps * 32, 0, stream>>>(arguments);
  } else {
    QUAIL_CHECK_EQ(arguments.head_dim, 64);
    rope_kernel<64><<<blocks, kWarps * 32, 0, stream>>>(arguments);
  }
  CheckCuda(cudaGetLastError(), "rope_kernel");
}

}  // namespace quail::infer::cuda
