#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/unroll.h"

/// Bodies of CpuKernels in GCC vector arithmetic. Included by one source file for each instruction
/// set, which defines QUAIL_CPU_LANES (f32 values a vector) and is compiled with its flags. The
/// anonymous namespace and the absence of standard containers keep code of one set from being
/// linked into another.
namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kLanes = QUAIL_CPU_LANES;

typedef float Vec __attribute__((vector_size(4 * QUAIL_CPU_LANES)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * QUAIL_CPU_LANES)));
typedef std::uint32_t UintVec __attribute__((vector_size(4 * QUAIL_CPU_LANES)));
typedef std::uint8_t ByteVec __attribute__((vector_size(QUAIL_CPU_LANES)));
typedef std::uint16_t HalfVec __attribute__((vector_size(2 * QUAIL_CPU_LANES)));

inline Vec Load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
inline void Store(float* p, Vec v) { std::memcpy(p, &v, sizeof(v)); }
inline Vec Splat(float x) { return x - Vec{}; }

inline IntVec LaneIndex() {
  IntVec v{};
  for (std::int32_t i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}

inline Vec Max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec Min(Vec a, Vec b) { return a < b ? a : b; }

inline float SumLanes(Vec v) {
  float lanes[kLanes];
  std::memcpy(lanes, &v, sizeof(v));
  for (std::int32_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int32_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

inline float MaxLanes(Vec v) {
  float lanes[kLanes];
  std::memcpy(lanes, &v, sizeof(v));
  for (std::int32_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int32_t i = 0; i < width; ++i) {
      lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
    }
  }
  return lanes[0];
}

/// 1.5 * 2^23: what is added to it is rounded to an integer, which the low bits then hold.
constexpr float kRounder = 12582912.0F;
constexpr std::int32_t kRounderBits = 0x4B400000;

/// exp(x) within 2 ulp for x in [-87, 88]; x below is taken as -87; NaN stays NaN. 2^n times the
/// Taylor polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2] (Cephes' splitting of ln 2).
inline Vec Exp(Vec x) {
  x = x < -87.0F ? Splat(-87.0F) : x;
  x = x > 88.0F ? Splat(88.0F) : x;
  const Vec kRound = Splat(kRounder);
  const Vec shifted = x * 1.44269504088896341F + kRound;
  const Vec n = shifted - kRound;
  const Vec r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  Vec p = Splat(1.0F / 720);
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const IntVec exponent = (std::bit_cast<IntVec>(shifted) - kRounderBits + 127) << 23;
  return p * std::bit_cast<Vec>(exponent);
}

inline float ExpScalar(float x) { return Exp(Splat(x))[0]; }

void RmsNorm(const float* x, const float* weight, float epsilon, std::int32_t n, float* out) {
  Vec squares = {};
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) squares += Load(x + i) * Load(x + i);
  float sum = SumLanes(squares);
  for (; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0F / std::sqrt(sum / static_cast<float>(n) + epsilon);
  for (i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void SiluProduct(const float* gate, const float* up, std::int32_t n, float* out) {
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec g = Load(gate + i);
    Store(out + i, g / (1.0F + Exp(-g)) * Load(up + i));
  }
  for (; i < n; ++i) out[i] = gate[i] / (1.0F + ExpScalar(-gate[i])) * up[i];
}

void Rotate(const float* head, const float* cosine, const float* sine, std::int32_t half,
            float* out) {
  for (std::int32_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    out[i] = a * cosine[i] - b * sine[i];
    out[i + half] = b * cosine[i] + a * sine[i];
  }
}

void Add(const float* x, std::int32_t n, float* sum) {
  for (std::int32_t i = 0; i < n; ++i) sum[i] += x[i];
}

void ToBf16(const float* x, std::int32_t n, std::uint16_t* out) {
  for (std::int32_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40U;
    out[i] = static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded);
  }
}

/// x [n], rounded as ToBf16 does; NaN and infinity stay what they are.
void RoundToBf16(float* x, std::int32_t n) {
  for (std::int32_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) & 0xFFFF0000U;
    x[i] = std::bit_cast<float>((bits & 0x7FFFFFFFU) > 0x7F800000U ? bits : rounded);
  }
}

void FromBf16(const std::uint16_t* x, std::int32_t n, float* out) {
  for (std::int32_t i = 0; i < n; ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(x[i]) << 16);
  }
}

float Dot(const float* a, const float* b, std::int32_t n) {
  Vec sums = {};
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums += Load(a + i) * Load(b + i);
  float sum = SumLanes(sums);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

struct ProductOperands {
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
};

// 24 accumulators of 32 registers with AVX-512, 12 of 16 otherwise.
constexpr std::int32_t kTileRows = 6;
constexpr std::int32_t kTileVectors = kLanes == 16 ? 4 : 2;

template <std::int32_t Rows>
void ProductTile(std::int32_t k, const ProductOperands& p, bool accumulate) {
  Vec sums[Rows][kTileVectors];
  Unroll<Rows * kTileVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kTileVectors, j = n % kTileVectors;
    sums[i][j] = accumulate ? Load(p.c + i * p.ldc + j * kLanes) : Vec{};
  });
  for (std::int32_t l = 0; l < k; ++l) {
    Vec b[kTileVectors];
    Unroll<kTileVectors>([&](auto j) __attribute__((always_inline)) {
      b[j] = Load(p.b + l * p.ldb + j * kLanes);
    });
    Unroll<Rows>([&](auto i) __attribute__((always_inline)) {
      const Vec a = Splat(p.a[i * p.lda + l]);
      Unroll<kTileVectors>([&](auto j) __attribute__((always_inline)) { sums[i][j] += a * b[j]; });
    });
  }
  Unroll<Rows * kTileVectors>([&](auto n) __attribute__((always_inline)) {
    constexpr std::int32_t i = n / kTileVectors, j = n % kTileVectors;
    Store(p.c + i * p.ldc + j * kLanes, sums[i][j]);
  });
}

void Product64(std::int32_t m, std::int32_t k, const float* a, std::int64_t lda, const float* b,
               std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate) {
  for (std::int32_t column = 0; column < kKeyBlock; column += kTileVectors * kLanes) {
    ForRowTiles<kTileRows>(m, [&](auto rows, std::int32_t row) {
      ProductTile<rows.value>(k, {a + row * lda, lda, b + column, ldb, c + row * ldc + column, ldc},
                              accumulate);
    });
  }
}

void SoftmaxBlock(float* scores, std::int32_t visible, SoftmaxState* state, float* output,
                  std::int32_t width) {
  const IntVec lane = LaneIndex();
  Vec block_max = Splat(scores[0]);
  for (std::int32_t i = 0; i < kKeyBlock; i += kLanes) {
    const Vec s = Load(scores + i);
    block_max = lane + i < visible ? Max(s, block_max) : block_max;
  }
  const float found = MaxLanes(block_max);
  const bool first = state->sum == 0.0F;
  const float max = first || found > state->max ? found : state->max;
  Vec sums = {};
  for (std::int32_t i = 0; i < kKeyBlock; i += kLanes) {
    const Vec p = lane + i < visible ? Exp(Load(scores + i) - max) : Vec{};
    sums += p;
    Store(scores + i, p);
  }
  if (first) {
    *state = {max, SumLanes(sums)};
    return;
  }
  if (max != state->max) {
    const float rescale = ExpScalar(state->max - max);
    state->sum *= rescale;
    for (std::int32_t i = 0; i < width; ++i) output[i] *= rescale;
  }
  state->max = max;
  state->sum += SumLanes(sums);
}

void TransposeKeys(const float* keys, std::int32_t count, std::int32_t width, float* out) {
  for (std::int32_t i = 0; i < width; ++i) {
    for (std::int32_t key = 0; key < count; ++key) out[i * kKeyBlock + key] = keys[key * width + i];
  }
}

float SumExp(const float* x, std::int32_t n, float max) {
  Vec sums = {};
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sums += Exp(Load(x + i) - max);
  float sum = SumLanes(sums);
  for (; i < n; ++i) sum += ExpScalar(x[i] - max);
  return sum;
}

inline std::int32_t Round(float x) {
  return std::bit_cast<std::int32_t>(x + kRounder) - kRounderBits;
}

/// Between the code of 0 and the ends of a byte; NaN becomes an end.
inline Vec Code(Vec x, float inverse, float zero) {
  const Vec code = x * inverse + zero;
  return Min(Max(code, Splat(0.0F)), Splat(255.0F));
}

RowCode Quantise(const float* x, std::int32_t n, std::uint8_t* codes) {
  Vec lowest = {};
  Vec highest = {};
  Vec poison = {};  // NaN as soon as one value is not finite
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Vec v = Load(x + i);
    lowest = Min(v, lowest);
    highest = Max(v, highest);
    poison += v * 0.0F;
  }
  float least = -MaxLanes(-lowest);
  float most = MaxLanes(highest);
  float not_finite = SumLanes(poison);
  for (std::int32_t j = i; j < n; ++j) {
    least = x[j] < least ? x[j] : least;
    most = x[j] > most ? x[j] : most;
    not_finite += x[j] * 0.0F;
  }
  constexpr float kLeastScale = 1e-30F;  // below it the inverse is not finite
  const float scale = (most - least) / 255.0F + not_finite;
  const float inverse = scale > kLeastScale ? 1.0F / scale : 0.0F;
  const float zero = static_cast<float>(Round(Code(Splat(0.0F), 0.0F, -least * inverse)[0]));
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const Vec rounded = Code(Load(x + i), inverse, zero) + kRounder;
    const ByteVec bytes =
        __builtin_convertvector(std::bit_cast<IntVec>(rounded) - kRounderBits, ByteVec);
    std::memcpy(codes + i, &bytes, sizeof(bytes));
  }
  for (; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(Round(Code(Splat(x[i]), inverse, zero)[0]));
  }
  return {scale, static_cast<std::int32_t>(zero)};
}

RowCode QuantiseAsBf16(float* x, std::int32_t n, std::uint8_t* codes) {
  RoundToBf16(x, n);
  return Quantise(x, n, codes);
}

void Dequantise(const Int8Row& row, std::int32_t n) {
  const auto* sums = reinterpret_cast<const std::byte*>(row.sums);
  std::int32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    IntVec sum;
    IntVec weights;
    std::memcpy(&sum, sums + 4 * i, sizeof(sum));
    std::memcpy(&weights, row.weight_sums + i, sizeof(weights));
    const Vec product = __builtin_convertvector(sum - row.x.zero * weights, Vec) *
                        (row.x.scale * Load(row.weight_scales + i));
    Store(row.y + i, row.accumulate ? Load(row.y + i) + product : product);
  }
  for (; i < n; ++i) {
    std::int32_t sum = 0;
    std::memcpy(&sum, sums + 4 * i, sizeof(sum));
    const float product = static_cast<float>(sum - row.x.zero * row.weight_sums[i]) *
                          (row.x.scale * row.weight_scales[i]);
    row.y[i] = row.accumulate ? row.y[i] + product : product;
  }
}

constexpr CpuKernels MakeKernels(Isa isa, std::string_view name) {
  return {
      isa, name,      RmsNorm,      SiluProduct,   Rotate, Add,      ToBf16,         FromBf16,
      Dot, Product64, SoftmaxBlock, TransposeKeys, SumExp, Quantise, QuantiseAsBf16, Dequantise};
}

}  // namespace
}  // namespace quail::infer::cpu
