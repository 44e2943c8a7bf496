#include <limits>

#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

/// Bias, head norm, rotation and KV placement. D / 16 neighbouring lanes hold a head: each has 8
/// values of its lower half and the 8 of the upper half that rotate with them, so that no lane of a
/// head is left out whatever its size (case 56), and all accesses are of 16 bytes. Bytes a (row,
/// head): 2D in, 2D out, 2D more for kept keys and values.
namespace quail::infer::cuda {
namespace {

constexpr int kThreads = 128;

template <int D>
struct Lanes {
  static constexpr int kCount = D / (2 * kPiece);  ///< lanes of a head
  static constexpr int kHeads = 32 / kCount;       ///< heads of a warp
  static_assert(32 % kCount == 0);
};

/// A lane's part of a head: elements [8 part, 8 part + 8) of both halves.
struct HeadPart {
  float low[kPiece];
  float high[kPiece];
};

template <int D>
__device__ HeadPart LoadPart(const __nv_bfloat16* head, const __nv_bfloat16* bias, int part) {
  HeadPart values;
  LoadPiece(head + part * kPiece, values.low);
  LoadPiece(head + D / 2 + part * kPiece, values.high);
  if (bias == nullptr) return values;
  HeadPart added;
  LoadPiece(bias + part * kPiece, added.low);
  LoadPiece(bias + D / 2 + part * kPiece, added.high);
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    values.low[i] += added.low[i];
    values.high[i] += added.high[i];
  }
  return values;
}

template <int D>
__device__ void StorePart(const HeadPart& values, __nv_bfloat16* head, int part) {
  StorePiece(head + part * kPiece, values.low);
  StorePiece(head + D / 2 + part * kPiece, values.high);
}

/// All lanes of a head call it.
template <int D>
__device__ void NormHead(HeadPart& values, const __nv_bfloat16* weight, float epsilon, int part) {
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    squares += values.low[i] * values.low[i] + values.high[i] * values.high[i];
  }
#pragma unroll
  for (int offset = Lanes<D>::kCount / 2; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(0xffffffff, squares, offset);
  }
  const float factor = rsqrtf(squares / D + epsilon);
  const HeadPart weights = LoadPart<D>(weight, nullptr, part);
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    values.low[i] *= factor * weights.low[i];
    values.high[i] *= factor * weights.high[i];
  }
}

/// `rotation`: cosine and sine of the row's position, [D / 2].
__device__ void RotatePart(HeadPart& values, const float2* rotation, int part) {
  const auto* turns = reinterpret_cast<const float4*>(rotation + part * kPiece);
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    const float4 two = turns[i / 2];
    const float cosine = i % 2 == 0 ? two.x : two.z;
    const float sine = i % 2 == 0 ? two.y : two.w;
    const float low = values.low[i];
    const float high = values.high[i];
    values.low[i] = low * cosine - high * sine;
    values.high[i] = high * cosine + low * sine;
  }
}

/// Zeroes what is not finite; true when anything was.
__device__ bool ClearNonFinite(HeadPart& values) {
  bool bad = false;
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    // A value beyond bf16's range becomes infinite when it is stored.
    if (!(fabsf(values.low[i]) < 3.38e38f)) bad = true, values.low[i] = 0;
    if (!(fabsf(values.high[i]) < 3.38e38f)) bad = true, values.high[i] = 0;
  }
  return bad;
}

template <int D>
__global__ void __launch_bounds__(kThreads) rope_kernel(RopeArguments a) {
  constexpr int kLanes = Lanes<D>::kCount;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int part = lane % kLanes;
  const unsigned warp = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
  const unsigned unit = warp * Lanes<D>::kHeads + lane / kLanes;
  const unsigned heads = a.q_heads + a.k_heads;  // a key's lanes also place its value head
  // Whole warps stay together for the shuffles: what is beyond the end repeats unit 0, unstored.
  const bool active = unit < a.rows * heads;
  const std::int64_t row = active ? unit / heads : 0;
  const int head = active ? static_cast<int>(unit % heads) : 0;
  const bool is_key = active && head >= a.q_heads;
  const auto bias_of = [&](int h) { return a.bias == nullptr ? nullptr : a.bias + h * D; };
  __nv_bfloat16* at = a.heads + row * a.row_stride + head * D;
  HeadPart values = LoadPart<D>(at, bias_of(head), part);
  if (a.q_norm != nullptr) {
    NormHead<D>(values, head < a.q_heads ? a.q_norm : a.k_norm, a.epsilon, part);
  }
  RotatePart(values, a.rotation + static_cast<std::int64_t>(a.positions[row]) * (D / 2), part);
  __nv_bfloat16* value_at = at + a.k_heads * D;
  HeadPart value = {};
  if (is_key) value = LoadPart<D>(value_at, bias_of(head + a.k_heads), part);
  const unsigned bad_lanes = __ballot_sync(0xffffffff, ClearNonFinite(value));
  const unsigned head_lanes = ((1u << kLanes) - 1) << (lane - part);
  if (is_key && (bad_lanes & head_lanes) != 0) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) values.low[i] = values.high[i] = __int_as_float(0x7fffffff);
  }
  if (active) StorePart<D>(values, at, part);
  if (!is_key) return;
  StorePart<D>(value, value_at, part);
  if (a.kv_slots == nullptr || a.kv_slots[row] < 0) return;
  const std::int64_t slot = (a.kv_slots[row] * a.k_heads + (head - a.q_heads)) * D;
  StorePart<D>(values, a.arena_k + slot, part);
  StorePart<D>(value, a.arena_v + slot, part);
}

template <int D>
void Launch(const RopeArguments& a, std::int64_t units, cudaStream_t stream) {
  constexpr std::int64_t kHeads = Lanes<D>::kHeads * (kThreads / 32);
  const auto blocks = static_cast<unsigned>((units + kHeads - 1) / kHeads);
  rope_kernel<D><<<blocks, kThreads, 0, stream>>>(a);
  CheckCuda(cudaGetLastError(), "rope_kernel");
}

}  // namespace

void LaunchRope(const RopeArguments& arguments, cudaStream_t stream) {
  const std::int64_t units =
      static_cast<std::int64_t>(arguments.rows) * (arguments.q_heads + arguments.k_heads);
  if (units == 0) return;
  QUAIL_CHECK_LT(units, std::int64_t{std::numeric_limits<std::int32_t>::max()});
  QUAIL_CHECK((arguments.q_norm == nullptr) == (arguments.k_norm == nullptr));
  if (arguments.head_dim == 128) {
    Launch<128>(arguments, units, stream);
  } else {
    QUAIL_CHECK_EQ(arguments.head_dim, 64);
    Launch<64>(arguments, units, stream);
  }
}

}  // namespace quail::infer::cuda
