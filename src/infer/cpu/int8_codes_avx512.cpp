#include "infer/cpu/int8_codes_avx512.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "infer/cpu/transpose_avx512.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kVectors = kKeyBlock / kLanes;
constexpr std::int32_t kStep = 4;                   // codes that a product adds up
constexpr std::int32_t kSteps = kKeyBlock / kStep;  // of a block's keys
constexpr std::int32_t kStepBytes = kKeyBlock * kStep;
constexpr float kLeastScale = 1e-30F;       // below it the steps are not finite
constexpr float kLeastValueScale = 1e-18F;  // its logarithm leaves room for weights

/// log2(x) within 1.2e-4; NaN stays NaN. The same of log2(1 + r), degree 4. REQUIRES: x > 0.
__m512 Log2(__m512 x) {
  const __m512 r = _mm512_sub_ps(_mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
                                 _mm512_set1_ps(1.0F));
  __m512 p = _mm512_set1_ps(-0.07844067364931107F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.3122694790363312F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(-0.6708827018737793F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.4368748664855957F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.00011457996151875705F));
  return _mm512_add_ps(p, _mm512_getexp_ps(x));
}

/// The first `count` lanes.
__mmask32 First(std::int32_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << std::max(count, 0)) - 1;
}

/// Bytes of a value of magnitude `largest` become 127.
__m512 StepsOf(float largest) {
  return _mm512_set1_ps(largest > kLeastScale ? 127.0F / largest : 0.0F);
}

__m128i Codes(__m512 values, __m512 steps) {
  return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(values, steps)));
}

/// Of magnitudes of bf16, which have the order of their bits.
float Largest(__m512i magnitudes) {
  const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(magnitudes),
                                        _mm512_extracti64x4_epi64(magnitudes, 1));
  const __m128i quarter =
      _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  // The least of the complements.
  const __m128i found = _mm_minpos_epu16(_mm_xor_si128(quarter, _mm_set1_epi16(-1)));
  const int largest = 0xFFFF - (_mm_cvtsi128_si32(found) & 0xFFFF);
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest << 16)));
}

/// The largest magnitudes of 16 vectors' elements.
__m512 LargestOf(const Int8Vectors& vectors, std::int32_t first) {
  const auto stride = static_cast<std::int32_t>(vectors.stride);
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_i32gather_ps(_mm512_mullo_epi32(lane, _mm512_set1_epi32(stride)),
                             vectors.codes + first * vectors.stride + vectors.width, 1);
}

/// NaN where the largest magnitude is not finite.
__m512 ScaleOf(__m512 largest) {
  return _mm512_fmadd_ps(largest, _mm512_set1_ps(1.0F / 127.0F),
                         _mm512_mul_ps(largest, _mm512_setzero_ps()));
}

/// out [64, 4] = rows [4, 64] transposed.
void InterleaveRows(const std::int8_t* rows, std::int64_t stride, std::int8_t* out) {
  const auto row = [&](std::int64_t i) { return _mm512_loadu_si512(rows + i * stride); };
  const __m512i low01 = _mm512_unpacklo_epi8(row(0), row(1));
  const __m512i high01 = _mm512_unpackhi_epi8(row(0), row(1));
  const __m512i low23 = _mm512_unpacklo_epi8(row(2), row(3));
  const __m512i high23 = _mm512_unpackhi_epi8(row(2), row(3));
  // Of each 16 columns, four to a vector.
  const __m512i a = _mm512_unpacklo_epi16(low01, low23);
  const __m512i b = _mm512_unpackhi_epi16(low01, low23);
  const __m512i c = _mm512_unpacklo_epi16(high01, high23);
  const __m512i d = _mm512_unpackhi_epi16(high01, high23);
  const __m512i ab_even = _mm512_shuffle_i32x4(a, b, 0x88);
  const __m512i ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const __m512i cd_even = _mm512_shuffle_i32x4(c, d, 0x88);
  const __m512i cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  _mm512_storeu_si512(out, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
  _mm512_storeu_si512(out + 64, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
  _mm512_storeu_si512(out + 128, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
  _mm512_storeu_si512(out + 192, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
}

}  // namespace

float QuantiseQuery(const float* query, std::int32_t dim, std::int32_t width, std::uint8_t* codes) {
  const bool whole = dim % kLanes == 0;
  const auto load = [&](std::int32_t i) __attribute__((always_inline)) {
    if (whole && i < dim) return _mm512_loadu_ps(query + i);
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>(First(dim - i)), query + i);
  };
  __m512 largest = _mm512_setzero_ps();
  __m512 not_finite = _mm512_setzero_ps();  // or NaN
  for (std::int32_t i = 0; i < dim; i += kLanes) {
    largest = _mm512_max_ps(largest, _mm512_abs_ps(load(i)));
    not_finite = _mm512_fmadd_ps(load(i), _mm512_setzero_ps(), not_finite);
  }
  const float most = _mm512_reduce_max_ps(largest);
  const __m512 steps = StepsOf(most);
  for (std::int32_t i = 0; i < width; i += kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + i),
                     _mm_xor_si128(Codes(load(i), steps), _mm_set1_epi8(-128)));
  }
  return most / 127.0F + _mm512_reduce_add_ps(not_finite);
}

/// Codes are written behind what is still to be read.
void QuantiseVector(std::uint16_t* vector, std::int32_t dim) {
  constexpr std::int32_t kHalves = 2 * kLanes;
  const auto load = [&](std::int32_t i) __attribute__((always_inline)) {
    return _mm512_maskz_loadu_epi16(First(dim - i), vector + i);
  };
  __m512i most = _mm512_setzero_si512();
  for (std::int32_t i = 0; i < dim; i += kHalves) {
    most = _mm512_max_epu16(most, _mm512_and_si512(load(i), _mm512_set1_epi16(0x7FFF)));
  }
  const float largest = Largest(most);
  const __m512 steps = StepsOf(largest);
  auto* codes = reinterpret_cast<std::int8_t*>(vector);
  for (std::int32_t i = 0; i < dim; i += kHalves) {
    const __m512i bits = load(i);
    const auto widen = [](__m256i half) __attribute__((always_inline)) {
      return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    };
    const __m128i low = Codes(widen(_mm512_castsi512_si256(bits)), steps);
    const __m128i high = Codes(widen(_mm512_extracti64x4_epi64(bits, 1)), steps);
    _mm256_mask_storeu_epi8(codes + i, First(dim - i), _mm256_set_m128i(high, low));
  }
  std::memcpy(codes + dim, &largest, sizeof(largest));
}

void PackKeys(const Int8Vectors& keys, Int8Block* block) {
  for (std::int32_t key = 0; key < kKeyBlock; key += kLanes) {
    __m512i sums = _mm512_setzero_si512();
    for (std::int32_t i = 0; i < block->width; i += kKeyBlock) {
      std::int8_t* out = block->keys + std::int64_t{i} * kKeyBlock + key * kStep;
      Transpose16(reinterpret_cast<const std::uint16_t*>(keys.codes + key * keys.stride + i),
                  keys.stride / 2, reinterpret_cast<std::uint16_t*>(out), kStepBytes / 2);
      for (std::int32_t l = 0; l < kSteps; ++l) {
        sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(-128),
                                   _mm512_loadu_si512(out + std::int64_t{l} * kStepBytes));
      }
    }
    _mm512_store_si512(block->bias.data() + key, _mm512_sub_epi32(_mm512_setzero_si512(), sums));
    _mm512_store_ps(block->key_scale.data() + key, ScaleOf(LargestOf(keys, key)));
  }
}

void PackValues(const Int8Vectors& values, Int8Block* block) {
  const std::int64_t width = block->width;
  for (std::int32_t step = 0; step < kSteps; ++step) {
    // As WeightRow leaves the weights: lane step / 4 of vector step % 4.
    const std::int32_t key = step % kVectors * kLanes + step / kVectors * kStep;
    for (std::int64_t column = 0; column < width; column += kKeyBlock) {
      InterleaveRows(values.codes + key * values.stride + column, values.stride,
                     block->values + (step * width + column) * kStep);
    }
  }
  for (std::int32_t key = 0; key < kKeyBlock; key += kLanes) {
    // max gives its second operand where one is NaN.
    const __m512 scale =
        _mm512_max_ps(_mm512_set1_ps(kLeastValueScale), ScaleOf(LargestOf(values, key)));
    _mm512_store_ps(block->log_value_scale.data() + key, Log2(scale));
    _mm512_store_ps(block->inverse_value_scale.data() + key,
                    _mm512_div_ps(_mm512_set1_ps(1.0F), scale));
  }
}

}  // namespace quail::infer::cpu
