#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "infer/cuda/launch.h"

/// Rows in 16-byte pieces of 8 columns, and their quantisation to e4m3 with a scale per 128
/// columns.
namespace quail::infer::cuda {

constexpr int kPiece = 8;  ///< columns a thread handles at once
constexpr int kPiecesPerBlock =
    128 / kPiece;  ///< threads that share one scale, neighbours in a warp

/// Two values as neighbouring bf16, `low` first.
__device__ inline unsigned PackPair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

__device__ inline void LoadPiece(const __nv_bfloat16* from, float (&values)[kPiece]) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
  for (int i = 0; i < kPiece / 2; ++i) {
    const float2 pair = __bfloat1622float2(pairs[i]);
    values[2 * i] = pair.x;
    values[2 * i + 1] = pair.y;
  }
}

__device__ inline void StorePiece(__nv_bfloat16* to, const float (&values)[kPiece]) {
  uint4 raw;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(&raw);
#pragma unroll
  for (int i = 0; i < kPiece / 2; ++i) {
    pairs[i] = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
  }
  *reinterpret_cast<uint4*>(to) = raw;
}

/// Scale for values whose largest magnitude is `amax`: e4m3 reaches 448. The floor keeps an
/// all-zero block finite.
__device__ inline float ScaleFor(float amax, BlockScale rounding) {
  const float scale = fmaxf(amax, 1e-10f) / 448.0f;
  return rounding == BlockScale::kExact ? scale : exp2f(ceilf(log2f(scale)));
}

/// Largest magnitude over the 16 neighbouring threads that share a block of 128 columns. All 32
/// lanes call it.
__device__ inline float BlockAmax(const float (&values)[kPiece]) {
  float amax = 0;
#pragma unroll
  for (int i = 0; i < kPiece; ++i) amax = fmaxf(amax, fabsf(values[i]));
#pragma unroll
  for (int offset = kPiecesPerBlock / 2; offset > 0; offset /= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(0xffffffff, amax, offset));
  }
  return amax;
}

__device__ inline void StoreFp8Piece(__nv_fp8_e4m3* to, const float (&values)[kPiece],
                                     float scale) {
  const float inverse = 1.0f / scale;
  uint2 raw;
  auto* bytes = reinterpret_cast<__nv_fp8x2_storage_t*>(&raw);
#pragma unroll
  for (int i = 0; i < kPiece / 2; ++i) {
    const float2 pair = make_float2(values[2 * i] * inverse, values[2 * i + 1] * inverse);
    bytes[i] = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
  }
  *reinterpret_cast<uint2*>(to) = raw;
}

/// The row maximum of `value` over the four lanes that hold a row of the tensor cores' results.
__device__ inline float RowMaximum(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffff, value, 2));
}

/// Writes one of a thread's two rows of 128 columns of the tensor cores' results in e4m3: four
/// lanes hold a row, two neighbouring columns of every eight each. They exchange them four column
/// blocks at a time, so that each writes eight bytes at once. `half`: 0 the upper row, 1 the lower.
/// `to`: the row's first column, null = nothing is written; all lanes call it.
__device__ inline void StoreFp8Row(const float (&values)[64], int half, float inverse,
                                   __nv_fp8_e4m3* to) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const bool odd = (lane & 1) != 0;
  const bool upper = (lane & 2) != 0;
  const auto pair = [&](int n) -> unsigned {
    const float2 two =
        make_float2(values[n * 4 + 2 * half] * inverse, values[n * 4 + 2 * half + 1] * inverse);
    return __nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3);
  };
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const unsigned first = pair(4 * k) | pair(4 * k + 1) << 16;
    const unsigned second = pair(4 * k + 2) | pair(4 * k + 3) << 16;
    // Lower lanes get the first two blocks of all, upper lanes the others.
    const unsigned other = __shfl_xor_sync(0xffffffff, upper ? first : second, 2);
    const unsigned low = upper ? other : first;    // of lane 0 or 1 of the four
    const unsigned high = upper ? second : other;  // of lane 2 or 3
    // Even lanes get the lower of the two blocks.
    const unsigned sent = __byte_perm(low, high, odd ? 0x5410 : 0x7632);
    const unsigned got = __shfl_xor_sync(0xffffffff, sent, 1);
    const unsigned kept = __byte_perm(low, high, odd ? 0x7632 : 0x5410);
    const unsigned left = odd ? got : kept;   // of lanes 0 and 2
    const unsigned right = odd ? kept : got;  // of lanes 1 and 3
    const uint2 bytes = {__byte_perm(left, right, 0x5410), __byte_perm(left, right, 0x7632)};
    if (to != nullptr) *reinterpret_cast<uint2*>(to + (4 * k + lane % 4) * 8) = bytes;
  }
}

/// Writes a piece in the forms that `out` asks for. All 32 lanes of a warp call it when fp8 is
/// wanted; lanes with `active` false only take part in the shuffles.
__device__ inline void StoreActivation(const Activation& out, std::int64_t row, int columns,
                                       int column, const float (&values)[kPiece], bool active,
                                       BlockScale rounding) {
  if (out.bf16 != nullptr && active) StorePiece(out.bf16 + row * columns + column, values);
  if (out.fp8 == nullptr) return;
  const float scale = ScaleFor(BlockAmax(values), rounding);
  if (!active) return;
  StoreFp8Piece(out.fp8 + row * columns + column, values, scale);
  if (column % 128 == 0) out.scales[(column / 128) * out.scale_pitch + row] = scale;
}

}  // namespace quail::infer::cuda
