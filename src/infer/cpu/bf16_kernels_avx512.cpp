#include <immintrin.h>

#include <cstring>

#include "infer/cpu/bf16_kernels.h"
#include "infer/cpu/rescale_avx512.h"
#include "infer/cpu/transpose_avx512.h"
#include "infer/cpu/unroll.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kRows = 6;  // 24 accumulators of 32 registers
constexpr std::int32_t kVectors = kKeyBlock / kLanes;
static_assert(kVectors == 4);

template <std::int32_t Rows>
void PairTile(const Bf16Product& p, std::int32_t row) {
  const std::uint16_t* rows = p.a + row * p.lda;
  float* out = p.c + row * p.ldc;
  __m512 sums[Rows][kVectors];
  Unroll<Rows * kVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kVectors, j = n % kVectors;
    sums[i][j] = p.accumulate ? _mm512_loadu_ps(out + i * p.ldc + j * kLanes) : _mm512_setzero_ps();
  });
  for (std::int32_t l = 0; l < p.k; l += 2) {
    const std::uint16_t* pairs = p.b + l / 2 * p.ldb;
    __m512i b[kVectors];
    Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
      b[j] = _mm512_loadu_si512(pairs + std::int64_t{j} * 2 * kLanes);
    });
    Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
      std::int32_t pair = 0;
      std::memcpy(&pair, rows + i * p.lda + l, sizeof(pair));
      __m512i a = _mm512_set1_epi32(pair);
      // clang 16 dies of a broadcast that it would fold into the product.
      __asm__("" : "+v"(a));
      Unroll<kVectors>([&](auto j) __attribute__((always_inline)) {
        sums[i][j] = _mm512_dpbf16_ps(sums[i][j], (__m512bh)a, (__m512bh)b[j]);
      });
    });
  }
  Unroll<Rows * kVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kVectors, j = n % kVectors;
    _mm512_storeu_ps(out + i * p.ldc + j * kLanes, sums[i][j]);
  });
}

void PairProduct64(const Bf16Product& product) {
  ForRowTiles<kRows>(
      product.m, [&product](auto rows, std::int32_t row) { PairTile<rows.value>(product, row); });
}

/// 2^x within 4e-6 of its value; 0 far below; NaN stays NaN. 2^floor(x) times a polynomial of
/// degree 4 that interpolates 2^r at Chebyshev's nodes of [0, 1].
__m512 Exp2(__m512 x) {
  const __m512 r = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.013670309446752071F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.05174499750137329F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.24160435795783997F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.6929728984832764F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.000003457069397F));
  return _mm512_scalef_ps(p, x);
}

void SoftmaxToBf16(const Bf16Softmax& row) {
  constexpr float kFarBelow = -1e30F;
  LaneSoftmax& state = *row.state;
  __m512 block[kVectors];
  for (std::int32_t j = 0; j < kVectors; ++j) block[j] = _mm512_loadu_ps(row.scores + j * kLanes);
  if (row.visible < kKeyBlock) {
    const std::uint64_t seen = (std::uint64_t{1} << row.visible) - 1;
    for (std::int32_t j = 0; j < kVectors; ++j) {
      const auto mask = static_cast<__mmask16>(seen >> (kLanes * j));
      block[j] = _mm512_mask_blend_ps(mask, _mm512_set1_ps(kFarBelow), block[j]);
    }
  }
  const __m512 largest =
      _mm512_max_ps(_mm512_max_ps(block[0], block[1]), _mm512_max_ps(block[2], block[3]));
  const __m512 bound = _mm512_set1_ps(state.max + kBf16SoftmaxSlack);
  if (!state.begun) {
    state.max = _mm512_reduce_max_ps(largest);
    state.begun = true;
  } else if (_mm512_cmp_ps_mask(largest, bound, _CMP_GT_OQ) != 0) {
    const float max = _mm512_reduce_max_ps(largest);
    Rescale(state, max, Exp2(_mm512_set1_ps(state.max - max)), {row.output, row.width});
  }
  const __m512 max = _mm512_set1_ps(state.max);
  __m512 sums = _mm512_loadu_ps(state.sums.data());
  for (std::int32_t j = 0; j < kVectors; ++j) {
    const __m512 p = Exp2(_mm512_sub_ps(block[j], max));
    sums = _mm512_add_ps(sums, p);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row.weights + j * kLanes),
                        (__m256i)_mm512_cvtneps_pbh(p));
  }
  _mm512_storeu_ps(state.sums.data(), sums);
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
