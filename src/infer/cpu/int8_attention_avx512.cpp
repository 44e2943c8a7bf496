#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "infer/cpu/int8_attention.h"
#include "infer/cpu/rescale_avx512.h"
#include "infer/cpu/transpose_avx512.h"
#include "infer/cpu/unroll.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kRows = 6;  // 24 accumulators of 32 registers
constexpr std::int32_t kVectors = kKeyBlock / kLanes;
constexpr std::int32_t kStep = 4;                   // codes that a product adds up
constexpr std::int32_t kSteps = kKeyBlock / kStep;  // of a block's keys
constexpr std::int32_t kStepBytes = kKeyBlock * kStep;
constexpr float kLeastScale = 1e-30F;       // below it the steps are not finite
constexpr float kLeastValueScale = 1e-18F;  // its logarithm leaves room for weights
static_assert(kVectors == 4);

/// sum += the products of four codes each. GCC 12 copies every sum that goes into its intrinsic,
/// and runs out of registers.
[[gnu::always_inline]] inline void AddProducts(__m512i& sum, __m512i a, __m512i b) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

/// sums [Rows, 64] += codes of a step's rows times the step's [64, 4] of B.
template <std::int32_t Rows>
struct Sums {
  __m512i lane[Rows][kVectors];

  [[gnu::always_inline]] void Add(const std::uint8_t* rows, std::int64_t stride,
                                  const std::int8_t* b) {
    __m512i columns[kVectors];
    Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
      columns[j] = _mm512_loadu_si512(b + std::int64_t{j} * kLanes * kStep);
    });
    Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
      std::int32_t codes = 0;
      std::memcpy(&codes, rows + i * stride, sizeof(codes));
      const __m512i a = _mm512_set1_epi32(codes);
      Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
        AddProducts(lane[i][j], a, columns[j]);
      });
    });
  }
};

/// Columns [column, column + 64) of the rows' output, each with its factor.
template <std::int32_t Rows>
void ValueTile(const std::uint8_t* weights, const float* factors, const Int8Block& block,
               std::int32_t column, float* output) {
  Sums<Rows> sums;
  Unroll<Rows * kVectors>([&](auto n) __attribute__((always_inline)) {
    sums.lane[n / kVectors][n % kVectors] = _mm512_setzero_si512();
  });
  const std::int8_t* values = block.values + std::int64_t{column} * kStep;
  for (std::int32_t l = 0; l < kSteps; ++l) {
    sums.Add(weights + l * kStep, kKeyBlock, values + std::int64_t{l} * block.width * kStep);
  }
  Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
    const __m512 factor = _mm512_set1_ps(factors[i]);
    Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
      float* out = output + std::int64_t{i} * block.width + column + j * kLanes;
      _mm512_storeu_ps(
          out, _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.lane[i][j]), factor, _mm512_loadu_ps(out)));
    });
  });
}

/// 2^x within 1e-4 of its value, finer than a code; 0 far below; NaN stays NaN. A polynomial of
/// degree 3 that interpolates 2^r at Chebyshev's nodes of [0, 1].
__m512 Exp2(__m512 x) {
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.07896725833415985F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.2246931493282318F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.6963247656822205F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.9999002814292908F));
  return _mm512_scalef_ps(p, x);
}

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

/// Of a row's keys in a block, all or those that it sees.
enum class Keys : std::uint8_t { kAll, kSeen };

/// The scores of one row, each with its value's scale, from its sums.
[[gnu::always_inline]] inline void ScoreRow(const __m512i (&sums)[kVectors], float query_scale,
                                            const Int8Block& block, __m512 (&score)[kVectors]) {
  const __m512 scale = _mm512_set1_ps(query_scale);
  Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[j]),
                                         _mm512_load_ps(block.key_scale.data() + j * kLanes));
    const __m512 shift = _mm512_load_ps(block.log_value_scale.data() + j * kLanes);
    score[j] = _mm512_fmadd_ps(product, scale, shift);
  });
}

/// Weights [64] of one row relative to the largest of the block: lane by lane, four keys of each
/// vector of scores in turn. Returns what brings them to the row's maximum.
template <Keys kKeys>
[[gnu::always_inline]] inline float Softmax(const Int8Rows& rows, std::int32_t row,
                                            const Int8Block& block, __m512 (&score)[kVectors],
                                            std::uint8_t* weights) {
  constexpr float kFarBelow = -1e30F;
  constexpr float kLogOfLargest = 7.994353436858858F;  // log2(255)
  LaneSoftmax& state = rows.states[row];
  __m512 inverse[kVectors];
  if constexpr (kKeys == Keys::kAll) {
    Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
      inverse[j] = _mm512_load_ps(block.inverse_value_scale.data() + j * kLanes);
    });
  } else {
    const std::uint64_t seen = ~std::uint64_t{0} >> (kKeyBlock - rows.visible[row]);
    Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
      const auto mask = static_cast<__mmask16>(seen >> (kLanes * j));
      score[j] = _mm512_mask_blend_ps(mask, _mm512_set1_ps(kFarBelow), score[j]);
      inverse[j] = _mm512_maskz_loadu_ps(mask, block.inverse_value_scale.data() + j * kLanes);
    });
  }
  const float largest = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(score[0], score[1]), _mm512_max_ps(score[2], score[3])));
  if (!state.begun) {
    state.begun = true;
    state.max = largest;
  } else if (largest > state.max + kInt8SoftmaxSlack) {
    Rescale(state, largest, Exp2(_mm512_set1_ps(state.max - largest)),
            {rows.output + std::int64_t{row} * block.width, block.width});
  }
  const __m512 top = _mm512_set1_ps(largest - kLogOfLargest);
  __m512i code[kVectors];
  __m512 sum = _mm512_setzero_ps();
  Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
    const __m512 weight = Exp2(_mm512_sub_ps(score[j], top));
    sum = _mm512_fmadd_ps(weight, inverse[j], sum);
    code[j] = _mm512_cvtps_epi32(weight);
  });
  _mm512_storeu_si512(weights, _mm512_packus_epi16(_mm512_packs_epi32(code[0], code[1]),
                                                   _mm512_packs_epi32(code[2], code[3])));
  const __m512 factor = Exp2(_mm512_set1_ps(largest - state.max));
  _mm512_storeu_ps(state.sums.data(),
                   _mm512_fmadd_ps(sum, factor, _mm512_loadu_ps(state.sums.data())));
  return _mm512_cvtss_f32(factor);
}

template <std::int32_t Rows, Keys kKeys>
void AttendTile(const Int8Rows& rows, std::int32_t row, const Int8Block& block) {
  alignas(64) std::uint8_t weights[Rows * kKeyBlock];
  float factors[Rows];
  Sums<Rows> sums;
  Unroll<Rows * kVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kVectors, j = n % kVectors;
    sums.lane[i][j] = _mm512_load_si512(block.bias.data() + j * kLanes);
  });
  const std::uint8_t* queries = rows.queries + std::int64_t{row} * block.width;
  for (std::int32_t l = 0; l < block.width; l += kStep) {
    sums.Add(queries + l, block.width, block.keys + std::int64_t{l} * kKeyBlock);
  }
  Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
    __m512 score[kVectors];
    ScoreRow(sums.lane[i], rows.query_scales[row + i], block, score);
    factors[i] = Softmax<kKeys>(rows, row + i, block, score, weights + i * kKeyBlock);
  });
  float* output = rows.output + std::int64_t{row} * block.width;
  for (std::int32_t column = 0; column < block.width; column += kKeyBlock) {
    ValueTile<Rows>(weights, factors, block, column, output);
  }
}

void Attend(const Int8Rows& rows, const Int8Block& block) {
  ForRowTiles<kRows>(rows.count, [&](auto tile, std::int32_t row) {
    const std::int32_t* visible = rows.visible + row;
    if (std::all_of(visible, visible + tile.value,
                    [](std::int32_t keys) { return keys == kKeyBlock; })) {
      AttendTile<tile.value, Keys::kAll>(rows, row, block);
    } else {
      AttendTile<tile.value, Keys::kSeen>(rows, row, block);
    }
  });
}

/// The first `count` lanes.
__mmask32 First(std::int32_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << std::max(count, 0)) - 1;
}

/// Bytes of a value of magnitude `largest` become 127.
__m512 StepsOf(float largest) {
  return _mm512_set1_ps(largest > kLeastScale ? 127.0F / largest : 0.0F);
}

void StoreCodes(__m512 values, __m512 steps, void* codes) {
  const __m512i code = _mm512_cvtps_epi32(_mm512_mul_ps(values, steps));
  _mm_storeu_si128(static_cast<__m128i*>(codes), _mm512_cvtsepi32_epi8(code));
}

float QuantiseQuery(const float* query, std::int32_t dim, std::int32_t width, std::uint8_t* codes) {
  const auto load = [&](std::int32_t i) __attribute__((always_inline)) {
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
    StoreCodes(load(i), steps, codes + i);
    auto* signed_codes = reinterpret_cast<__m128i*>(codes + i);
    _mm_storeu_si128(signed_codes,
                     _mm_xor_si128(_mm_loadu_si128(signed_codes), _mm_set1_epi8(-128)));
  }
  return most / 127.0F + _mm512_reduce_add_ps(not_finite);
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

void Quantise(const RowsToCodes& to) {
  constexpr std::int32_t kHalves = 2 * kLanes;
  const bool whole = to.dim % kHalves == 0;
  const std::uint16_t* rows = to.rows;
  std::int8_t* codes = to.codes;
  for (std::int32_t row = 0; row < to.count; ++row, rows += to.dim, codes += to.width) {
    const auto load = [&](std::int32_t i) __attribute__((always_inline)) {
      if (whole && i < to.dim) return _mm512_loadu_si512(rows + i);
      return _mm512_maskz_loadu_epi16(First(to.dim - i), rows + i);
    };
    __m512i most = _mm512_setzero_si512();
    for (std::int32_t i = 0; i < to.dim; i += kHalves) {
      most = _mm512_max_epu16(most, _mm512_and_si512(load(i), _mm512_set1_epi16(0x7FFF)));
    }
    to.largest[row] = Largest(most);
    const __m512 steps = StepsOf(to.largest[row]);
    for (std::int32_t i = 0; i < to.width; i += kHalves) {
      const __m512i bits = load(i);
      const auto widen = [](__m256i half) __attribute__((always_inline)) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
      };
      StoreCodes(widen(_mm512_castsi512_si256(bits)), steps, codes + i);
      StoreCodes(widen(_mm512_extracti64x4_epi64(bits, 1)), steps, codes + i + kLanes);
    }
  }
}

/// NaN where the largest magnitude is not finite.
__m512 ScaleOf(const float* largest) {
  const __m512 value = _mm512_loadu_ps(largest);
  return _mm512_fmadd_ps(value, _mm512_set1_ps(1.0F / 127.0F),
                         _mm512_mul_ps(value, _mm512_setzero_ps()));
}

void PackKeys(const std::int8_t* codes, const float* largest, Int8Block* block) {
  const std::int32_t width = block->width;
  for (std::int32_t key = 0; key < kKeyBlock; key += kLanes) {
    __m512i sums = _mm512_setzero_si512();
    for (std::int32_t i = 0; i < width; i += kKeyBlock) {
      std::int8_t* out = block->keys + std::int64_t{i} * kKeyBlock + key * kStep;
      Transpose16(reinterpret_cast<const std::uint16_t*>(codes + std::int64_t{key} * width + i),
                  width / 2, reinterpret_cast<std::uint16_t*>(out), kStepBytes / 2);
      for (std::int32_t l = 0; l < kSteps; ++l) {
        sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(-128),
                                   _mm512_loadu_si512(out + std::int64_t{l} * kStepBytes));
      }
    }
    _mm512_store_si512(block->bias.data() + key, _mm512_sub_epi32(_mm512_setzero_si512(), sums));
    _mm512_store_ps(block->key_scale.data() + key, ScaleOf(largest + key));
  }
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

void PackValues(const std::int8_t* codes, const float* largest, Int8Block* block) {
  const std::int64_t width = block->width;
  for (std::int32_t step = 0; step < kSteps; ++step) {
    // As Softmax leaves the weights: lane step / 4 of vector step % 4.
    const std::int32_t key = step % kVectors * kLanes + step / kVectors * kStep;
    for (std::int64_t column = 0; column < width; column += kKeyBlock) {
      InterleaveRows(codes + key * width + column, width,
                     block->values + (step * width + column) * kStep);
    }
  }
  for (std::int32_t key = 0; key < kKeyBlock; key += kLanes) {
    // max gives its second operand where one is NaN.
    const __m512 scale = _mm512_max_ps(_mm512_set1_ps(kLeastValueScale), ScaleOf(largest + key));
    _mm512_store_ps(block->log_value_scale.data() + key, Log2(scale));
    _mm512_store_ps(block->inverse_value_scale.data() + key,
                    _mm512_div_ps(_mm512_set1_ps(1.0F), scale));
  }
}

}  // namespace

const Int8Attention* SelectInt8Attention() {
  static constexpr Int8Attention kAttention = {QuantiseQuery, Quantise, PackKeys, PackValues,
                                               Attend};
  const bool supported =
      __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return supported ? &kAttention : nullptr;
}

}  // namespace quail::infer::cpu
