#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "infer/cpu/int8_attention.h"
#include "infer/cpu/int8_codes_avx512.h"
#include "infer/cpu/unroll.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kRows = 6;  // 24 accumulators of 32 registers
constexpr std::int32_t kVectors = kKeyBlock / kLanes;
constexpr std::int32_t kStep = 4;                   // codes that a product adds up
constexpr std::int32_t kSteps = kKeyBlock / kStep;  // of a block's keys
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

/// Of a row's keys in a block, all or those that it sees.
enum class Keys : std::uint8_t { kAll, kSeen };

/// Which of keys [16 * vector, 16 * vector + 16) of a block a row sees.
__mmask16 Seen(std::int32_t visible, std::int32_t vector) {
  return static_cast<__mmask16>(~std::uint64_t{0} >> (kKeyBlock - visible) >> (kLanes * vector));
}

/// What a tile's rows bring from one step to the next: the scores leave the registers, so that the
/// rows' maxima are found together.
struct TileMemory {
  alignas(64) std::array<float, kRows * kKeyBlock> scores;
  alignas(64) std::array<std::uint8_t, kRows * kKeyBlock> weights;
  alignas(64) std::array<float, kLanes> tops;     ///< scores of code 1
  alignas(64) std::array<float, kLanes> factors;  ///< from the block's largest to the row's maximum
};

[[gnu::always_inline]] inline __m512 MaxOfPairs(__m512 a, __m512 b) {
  return _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}

/// Lane i: the largest lane of row i's vector. Those from Rows on are of any row.
template <std::int32_t Rows>
[[gnu::always_inline]] inline __m512 LargestOfRows(const __m512 (&rows)[Rows]) {
  static_assert(Rows <= kRows && kRows <= 8);
  const auto row = [&](std::int32_t i) __attribute__((always_inline)) {
    return rows[i < Rows ? i : 0];
  };
  const auto fours = [](__m512 ab, __m512 cd) __attribute__((always_inline)) {
    return _mm512_max_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  };
  const __m512 first = fours(MaxOfPairs(row(0), row(1)), MaxOfPairs(row(2), row(3)));
  const __m512 pair = MaxOfPairs(row(4), row(5));
  const __m512 last = fours(pair, pair);
  // Of each, the four quarters.
  const __m512 halves = _mm512_max_ps(_mm512_shuffle_f32x4(first, last, 0x88),
                                      _mm512_shuffle_f32x4(first, last, 0xdd));
  const __m512 whole = _mm512_max_ps(halves, _mm512_shuffle_f32x4(halves, halves, 0xb1));
  return _mm512_shuffle_f32x4(whole, whole, 0x08);
}

/// The scores of one row, each with its value's scale, from its sums. Returns the largest of each
/// lane.
template <Keys kKeys>
[[gnu::always_inline]] inline __m512 ScoreRow(const __m512i (&sums)[kVectors], float query_scale,
                                              std::int32_t visible, const Int8Block& block,
                                              float* scores) {
  constexpr float kFarBelow = -1e30F;
  const __m512 scale = _mm512_set1_ps(query_scale);
  __m512 score[kVectors];
  Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[j]),
                                         _mm512_load_ps(block.key_scale.data() + j * kLanes));
    const __m512 shift = _mm512_load_ps(block.log_value_scale.data() + j * kLanes);
    score[j] = _mm512_fmadd_ps(product, scale, shift);
    if constexpr (kKeys == Keys::kSeen) {
      score[j] = _mm512_mask_blend_ps(Seen(visible, j), _mm512_set1_ps(kFarBelow), score[j]);
    }
    _mm512_store_ps(scores + j * kLanes, score[j]);
  });
  return _mm512_max_ps(_mm512_max_ps(score[0], score[1]), _mm512_max_ps(score[2], score[3]));
}

/// Brings the sums and the output of the rows in `lagging` to their new maxima.
[[gnu::noinline]] void Rescale(const Int8Rows& rows, std::int32_t row, std::int32_t width,
                               __mmask16 lagging, __m512 factors) {
  alignas(64) std::array<float, kLanes> factor_of;
  _mm512_store_ps(factor_of.data(), factors);
  const auto scale = [](float* values, std::int32_t count, float factor) {
    for (std::int32_t i = 0; i < count; ++i) values[i] *= factor;
  };
  for (std::size_t i = 0; i < kRows; ++i) {
    if ((lagging >> i & 1) == 0) continue;
    const auto at = row + static_cast<std::int64_t>(i);
    scale(rows.sums + at * kLanes, kLanes, factor_of[i]);
    scale(rows.output + at * width, width, factor_of[i]);
  }
}

/// Takes the block's largest scores of the rows from `row` on: their maxima follow where they lag
/// too far behind.
template <std::int32_t Rows>
[[gnu::always_inline]] inline void TakeLargest(const Int8Rows& rows, std::int32_t row,
                                               std::int32_t width, __m512 largest,
                                               TileMemory& tile) {
  constexpr float kLogOfLargest = 7.994353436858858F;  // log2(255)
  constexpr __mmask16 kThose = (1 << Rows) - 1;
  __m512 maxima = _mm512_maskz_loadu_ps(kThose, rows.maxima + row);
  const __m512 bound = _mm512_add_ps(maxima, _mm512_set1_ps(kInt8SoftmaxSlack));
  const __mmask16 lagging = _mm512_mask_cmp_ps_mask(kThose, largest, bound, _CMP_GT_OQ);
  if (lagging != 0) {
    Rescale(rows, row, width, lagging, Exp2(_mm512_sub_ps(maxima, largest)));
    maxima = _mm512_mask_blend_ps(lagging, maxima, largest);
    _mm512_mask_storeu_ps(rows.maxima + row, kThose, maxima);
  }
  _mm512_store_ps(tile.tops.data(), _mm512_sub_ps(largest, _mm512_set1_ps(kLogOfLargest)));
  _mm512_store_ps(tile.factors.data(), Exp2(_mm512_sub_ps(largest, maxima)));
  // To be broadcast from memory: GCC 12 would permute registers instead, where products run.
  __asm__("" : "+m"(tile.tops), "+m"(tile.factors));
}

/// Weights [64] of one row relative to the largest of the block: lane by lane, four keys of each
/// vector of scores in turn. Returns their sum by lane.
template <Keys kKeys>
[[gnu::always_inline]] inline __m512 WeightRow(const float* scores, float top, std::int32_t visible,
                                               const Int8Block& block, std::uint8_t* weights) {
  __m512i code[kVectors];
  __m512 sum = _mm512_setzero_ps();
  Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
    __m512 inverse = _mm512_load_ps(block.inverse_value_scale.data() + j * kLanes);
    if constexpr (kKeys == Keys::kSeen) {
      inverse = _mm512_maskz_mov_ps(Seen(visible, j), inverse);
    }
    const __m512 score = _mm512_load_ps(scores + j * kLanes);
    const __m512 weight = Exp2(_mm512_sub_ps(score, _mm512_set1_ps(top)));
    sum = _mm512_fmadd_ps(weight, inverse, sum);
    code[j] = _mm512_cvtps_epi32(weight);
  });
  _mm512_store_si512(weights, _mm512_packus_epi16(_mm512_packs_epi32(code[0], code[1]),
                                                  _mm512_packs_epi32(code[2], code[3])));
  return sum;
}

/// sums [Rows, 64] of codes, from the bias on.
template <std::int32_t Rows>
[[gnu::always_inline]] inline void MultiplyKeys(const std::uint8_t* queries, const Int8Block& block,
                                                Sums<Rows>& sums) {
  Unroll<Rows * kVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kVectors, j = n % kVectors;
    sums.lane[i][j] = _mm512_load_si512(block.bias.data() + j * kLanes);
  });
  for (std::int32_t l = 0; l < block.width; l += kStep) {
    sums.Add(queries + l, block.width, block.keys + std::int64_t{l} * kKeyBlock);
  }
}

template <std::int32_t Rows, Keys kKeys>
void AttendTile(const Int8Rows& rows, std::int32_t row, const Int8Block& block) {
  TileMemory tile;
  Sums<Rows> sums;
  MultiplyKeys(rows.queries + std::int64_t{row} * block.width, block, sums);
  __m512 largest[Rows];
  Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
    largest[i] = ScoreRow<kKeys>(sums.lane[i], rows.query_scales[row + i], rows.visible[row + i],
                                 block, tile.scores.data() + i * kKeyBlock);
  });
  TakeLargest<Rows>(rows, row, block.width, LargestOfRows<Rows>(largest), tile);
  Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
    const __m512 sum =
        WeightRow<kKeys>(tile.scores.data() + i * kKeyBlock, tile.tops[i], rows.visible[row + i],
                         block, tile.weights.data() + i * kKeyBlock);
    float* sums_of_row = rows.sums + std::int64_t{row + i} * kLanes;
    _mm512_storeu_ps(sums_of_row, _mm512_fmadd_ps(sum, _mm512_set1_ps(tile.factors[i]),
                                                  _mm512_loadu_ps(sums_of_row)));
  });
  float* output = rows.output + std::int64_t{row} * block.width;
  for (std::int32_t column = 0; column < block.width; column += kKeyBlock) {
    ValueTile<Rows>(tile.weights.data(), tile.factors.data(), block, column, output);
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

}  // namespace

const Int8Attention* SelectInt8Attention() {
  static constexpr Int8Attention kAttention = {QuantiseQuery, QuantiseVector, PackKeys, PackValues,
                                               Attend};
  const bool supported =
      __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  return supported ? &kAttention : nullptr;
}

}  // namespace quail::infer::cpu
