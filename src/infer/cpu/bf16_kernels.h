#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/lane_softmax.h"

/// Attention's products of bf16 operands with f32 sums, by the processor's own bf16 units. An
/// operand B is packed in pairs: two consecutive elements of its inner dimension side by side, as
/// those units read it.
namespace quail::infer::cpu {

enum class Bf16Unit : std::uint8_t { kAvx512, kAmx };

/// Inner dimensions of bf16 products are padded to a multiple of this with zeros.
inline constexpr std::int32_t kBf16Depth = 32;
/// Rows behind the last one of A that a product may read (and throw away).
inline constexpr std::int32_t kBf16SpareRows = 16;

/// f32 C [m, 64] = (accumulate ? C : 0) + A [m, k] B [k, 64]. REQUIRES: k a multiple of kBf16Depth.
struct Bf16Product {
  std::int32_t m = 0;
  std::int32_t k = 0;
  const std::uint16_t* a = nullptr;  ///< bf16 [m + kBf16SpareRows, k], row stride `lda`
  std::int64_t lda = 0;
  const std::uint16_t* b = nullptr;  ///< bf16 pairs [k / 2, 64, 2], `ldb` elements a pair of rows
  std::int64_t ldb = 0;
  float* c = nullptr;  ///< row stride `ldc`
  std::int64_t ldc = 0;
  bool accumulate = false;
};

/// How far a row's maximum may lag behind its largest score.
inline constexpr float kBf16SoftmaxSlack = 8;

/// One row's next key block. REQUIRES: 0 < visible <= 64, width a multiple of 16.
struct Bf16Softmax {
  const float* scores = nullptr;  ///< [64], in powers of two
  std::int32_t visible = 0;
  LaneSoftmax* state = nullptr;
  float* output = nullptr;  ///< [width], unnormalised
  std::int32_t width = 0;
  std::uint16_t* weights = nullptr;  ///< bf16 [64], written
};

/// Results of a row depend on that row alone. Pointers are distinct.
struct Bf16Kernels {
  Bf16Unit unit;
  std::string_view name;
  /// Around the products of one thread: the unit's registers are set up, and given back.
  void (*begin)();
  void (*end)();
  void (*product64)(const Bf16Product& product);
  /// weights = 2^(score - max) rounded to bf16, zero from `visible` on; adds to the sums, and
  /// brings them and the output to a new maximum where the old one is left too far behind.
  void (*softmax_block)(const Bf16Softmax& softmax);
  /// keys [64, width] to out [width / 2, 64, 2]. REQUIRES: width a multiple of kBf16Depth.
  void (*pack_keys)(const std::uint16_t* keys, std::int32_t width, std::uint16_t* out);
  /// values [64, width] to out [32, width, 2]. REQUIRES: width a multiple of kBf16Depth.
  void (*pack_values)(const std::uint16_t* values, std::int32_t width, std::uint16_t* out);
};

const Bf16Kernels& Avx512Bf16Kernels();
const Bf16Kernels& AmxKernels();

/// Units that this processor has and this process may use, best last; empty without avx512_bf16.
std::span<const Bf16Unit> SupportedBf16Units();
/// Whether bf16 products are faster than f32 ones here: AMX, or avx512_bf16 on AMD. Intel's
/// vdpbf16ps without AMX runs at half the rate of f32 FMA.
bool Bf16IsFast();
/// The best, or `wanted`. REQUIRES: it is supported.
const Bf16Kernels& SelectBf16Kernels(std::optional<Bf16Unit> wanted = std::nullopt);

}  // namespace quail::infer::cpu
