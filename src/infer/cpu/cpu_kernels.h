#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// The CPU backend's own loops, compiled once for each instruction set and chosen at run time.
namespace quail::infer::cpu {

enum class Isa : std::uint8_t { kBaseline, kAvx2, kAvx512 };

/// Keys that attention works on at a time.
inline constexpr std::int32_t kKeyBlock = 64;

/// Running softmax of one query row over key blocks (Milakov and Gimelshein 2018; Dao et al. 2022).
struct SoftmaxState {
  float max = 0;
  float sum = 0;
};

/// How the bytes of a quantised row are read: x = scale * (code - zero).
struct RowCode {
  float scale = 0;
  std::int32_t zero = 0;
};

/// One row of an int8 product: sums [n] of codes with weight codes become f32 y [n].
struct Int8Row {
  RowCode x;
  const std::int32_t* sums = nullptr;
  const float* weight_scales = nullptr;
  const std::int32_t* weight_sums = nullptr;  ///< of the codes of each weight row
  float* y = nullptr;                         ///< may be the memory of `sums`
  bool accumulate = false;
};

/// All pointers are f32 and distinct unless said otherwise; results of a row depend on that row
/// alone.
struct CpuKernels {
  Isa isa;
  std::string_view name;
  /// out [n] = x / sqrt(mean(x^2) + epsilon) * weight. `out` may be `x`.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int32_t n, float* out);
  /// out [n] = gate / (1 + exp(-gate)) * up. `out` may be `gate`.
  void (*silu_product)(const float* gate, const float* up, std::int32_t n, float* out);
  /// Rotates the halves of a head [2 * half]: `out` may be `head`.
  void (*rotate)(const float* head, const float* cosine, const float* sine, std::int32_t half,
                 float* out);
  void (*add)(const float* x, std::int32_t n, float* sum);
  void (*to_bf16)(const float* x, std::int32_t n, std::uint16_t* out);
  void (*from_bf16)(const std::uint16_t* x, std::int32_t n, float* out);
  float (*dot)(const float* a, const float* b, std::int32_t n);
  /// C [m, 64] = (accumulate ? C : 0) + A [m, k] B [k, 64], row strides lda, ldb, ldc.
  void (*product64)(std::int32_t m, std::int32_t k, const float* a, std::int64_t lda,
                    const float* b, std::int64_t ldb, float* c, std::int64_t ldc, bool accumulate);
  /// One row's next key block: turns scores [64] into exp(score - max), zero from `visible` on;
  /// brings `state` and the row's unnormalised output [width] to the maximum so far. REQUIRES: 0 <
  /// visible <= 64; state.sum = 0 before the first block.
  void (*softmax_block)(float* scores, std::int32_t visible, SoftmaxState* state, float* output,
                        std::int32_t width);
  /// keys [count, width] to columns [0, count) of out [width, 64].
  void (*transpose_keys)(const float* keys, std::int32_t count, std::int32_t width, float* out);
  /// Sum of exp(x - max).
  float (*sum_exp)(const float* x, std::int32_t n, float max);
  /// codes [n]: 0 and the range of x onto 0 to 255. The scale is NaN where x has no finite range.
  RowCode (*quantise)(const float* x, std::int32_t n, std::uint8_t* codes);
  /// The same of x rounded to bf16 first, in place.
  RowCode (*quantise_as_bf16)(float* x, std::int32_t n, std::uint8_t* codes);
  /// y = (accumulate ? y : 0) + x.scale * weight_scales * (sums - x.zero * weight_sums).
  void (*dequantise)(const Int8Row& row, std::int32_t n);
};

const CpuKernels& BaselineKernels();
const CpuKernels& Avx2Kernels();
const CpuKernels& Avx512Kernels();

/// Sets that this processor runs, best last.
std::span<const Isa> SupportedIsas();
/// The best supported, or `wanted`. Throws Error{kDevice} when the processor lacks it.
const CpuKernels& SelectKernels(std::optional<Isa> wanted = std::nullopt);

/// Product name as the processor gives it.
std::string_view ProcessorName();

}  // namespace quail::infer::cpu
