#include <immintrin.h>

#include <bit>
#include <cstring>

#include "infer/cpu/bf16_kernels.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kRows = 6;  // 24 accumulators of 32 registers
constexpr std::int32_t kVectors = kKeyBlock / kLanes;

__m512bh LoadPairs(const std::uint16_t* p) {
  return std::bit_cast<__m512bh>(_mm512_loadu_si512(p));
}

template <std::int32_t Rows>
void PairTile(const Bf16Product& p, std::int32_t row) {
  const std::uint16_t* rows = p.a + row * p.lda;
  float* out = p.c + row * p.ldc;
  __m512 sums[Rows][kVectors];
  for (std::int32_t i = 0; i < Rows; ++i) {
    for (std::int32_t j = 0; j < kVectors; ++j) {
      sums[i][j] =
          p.accumulate ? _mm512_loadu_ps(out + i * p.ldc + j * kLanes) : _mm512_setzero_ps();
    }
  }
  for (std::int32_t l = 0; l < p.k; l += 2) {
    __m512bh b[kVectors];
    for (std::int32_t j = 0; j < kVectors; ++j) {
      b[j] = LoadPairs(p.b + l / 2 * p.ldb + std::int64_t{j} * 2 * kLanes);
    }
    for (std::int32_t i = 0; i < Rows; ++i) {
      std::int32_t pair = 0;
      std::memcpy(&pair, rows + i * p.lda + l, sizeof(pair));
      const auto a = std::bit_cast<__m512bh>(_mm512_set1_epi32(pair));
      for (std::int32_t j = 0; j < kVectors; ++j) {
        sums[i][j] = _mm512_dpbf16_ps(sums[i][j], a, b[j]);
      }
    }
  }
  for (std::int32_t i = 0; i < Rows; ++i) {
    for (std::int32_t j = 0; j < kVectors; ++j) {
      _mm512_storeu_ps(out + i * p.ldc + j * kLanes, sums[i][j]);
    }
  }
}

template <std::int32_t Rows>
void PairRemainder(const Bf16Product& p, std::int32_t row) {
  if constexpr (Rows > 0) {
    if (p.m - row == Rows) {
      PairTile<Rows>(p, row);
    } else {
      PairRemainder<Rows - 1>(p, row);
    }
  }
}

void PairProduct64(const Bf16Product& product) {
  std::int32_t row = 0;
  for (; row + kRows <= product.m; row += kRows) PairTile<kRows>(product, row);
  PairRemainder<kRows - 1>(product, row);
}

/// 2^x for x <= 0 within 3e-6 of its value, 2^-126 for x below; NaN stays NaN. 2^n times the Taylor
/// polynomial of degree 5 on [-1/2, 1/2].
__m512 Exp2(__m512 x) {
  // The second operand is what a NaN in either gives.
  x = _mm512_max_ps(_mm512_set1_ps(-126.0F), x);
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, n);
  __m512 p = _mm512_set1_ps(1.3333558146e-3F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.6181291076e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.5504108665e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.4022650696e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.9314718056e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

void SoftmaxToBf16(const Bf16Softmax& row) {
  const auto [scores, visible, state, output, width, weights] = row;
  const std::uint64_t seen = visible >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << visible) - 1;
  __m512 block[kVectors];
  __m512 largest = _mm512_set1_ps(scores[0]);
  for (std::int32_t j = 0; j < kVectors; ++j) {
    const auto mask = static_cast<__mmask16>(seen >> (kLanes * j));
    block[j] = _mm512_loadu_ps(scores + j * kLanes);
    largest = _mm512_mask_max_ps(largest, mask, block[j], largest);
  }
  const float found = _mm512_reduce_max_ps(largest);
  const bool first = state->sum == 0.0F;
  const float max = first || found > state->max ? found : state->max;
  __m512 sums = _mm512_setzero_ps();
  for (std::int32_t j = 0; j < kVectors; ++j) {
    const auto mask = static_cast<__mmask16>(seen >> (kLanes * j));
    const __m512 p = _mm512_maskz_mov_ps(mask, Exp2(_mm512_sub_ps(block[j], _mm512_set1_ps(max))));
    sums = _mm512_add_ps(sums, p);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + j * kLanes),
                        std::bit_cast<__m256i>(_mm512_cvtneps_pbh(p)));
  }
  const float sum = _mm512_reduce_add_ps(sums);
  if (first) {
    *state = {max, sum};
    return;
  }
  if (max != state->max) {
    const __m512 rescale = Exp2(_mm512_set1_ps(state->max - max));
    state->sum *= _mm512_cvtss_f32(rescale);
    for (std::int32_t i = 0; i < width; i += kLanes) {
      _mm512_storeu_ps(output + i, _mm512_mul_ps(_mm512_loadu_ps(output + i), rescale));
    }
  }
  state->max = max;
  state->sum += sum;
}

/// out [16, ldo] = transpose of words [16, ldw].
void Transpose16(const std::uint16_t* in, std::int64_t ldi, std::uint16_t* out, std::int64_t ldo) {
  __m512i r[16];
  __m512i t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(in + i * ldi);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    _mm512_storeu_si512(out + i * ldo, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_storeu_si512(out + (i + 4) * ldo, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_storeu_si512(out + (i + 8) * ldo, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_storeu_si512(out + (i + 12) * ldo, _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

void PackKeys(const std::uint16_t* keys, std::int32_t width, std::uint16_t* out) {
  for (std::int32_t pair = 0; pair < width / 2; pair += 16) {
    for (std::int32_t key = 0; key < kKeyBlock; key += 16) {
      Transpose16(keys + std::int64_t{key} * width + 2 * pair, width,
                  out + std::int64_t{pair} * 2 * kKeyBlock + 2 * key, 2 * kKeyBlock);
    }
  }
}

void PackValues(const std::uint16_t* values, std::int32_t width, std::uint16_t* out) {
  const __m512i kFirst =
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                       37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i kSecond = _mm512_add_epi16(kFirst, _mm512_set1_epi16(16));
  for (std::int32_t row = 0; row < kKeyBlock; row += 2) {
    for (std::int32_t column = 0; column < width; column += 32) {
      const std::uint16_t* in = values + std::int64_t{row} * width + column;
      const __m512i upper = _mm512_loadu_si512(in);
      const __m512i lower = _mm512_loadu_si512(in + width);
      std::uint16_t* target = out + std::int64_t{row} * width + 2 * column;
      _mm512_storeu_si512(target, _mm512_permutex2var_epi16(upper, kFirst, lower));
      _mm512_storeu_si512(target + 32, _mm512_permutex2var_epi16(upper, kSecond, lower));
    }
  }
}

}  // namespace

const Bf16Kernels& Avx512Bf16Kernels() {
  static constexpr Bf16Kernels kKernels = {Bf16Unit::kAvx512, "avx512_bf16", [] {},    [] {},
                                           PairProduct64,     SoftmaxToBf16, PackKeys, PackValues};
  return kKernels;
}

}  // namespace quail::infer::cpu
