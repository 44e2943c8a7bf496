#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "spec/gguf_file.h"

namespace quail::infer {

/// IEEE binary16 to f32, subnormals, infinities and NaN included.
inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7FFFU;
  // Moved into place the exponent is 112 too small; the product restores it, for subnormals too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(scaled);
  const std::uint32_t special = magnitude >= 0x7C00U ? 0x7F800000U : 0U;
  return std::bit_cast<float>(bits | special | sign);
}

inline float Bf16ToFloat(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

/// Round to nearest even; NaN stays NaN.
inline std::uint16_t FloatToBf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/// fp8 e4m3 (OCP, no infinities, S.1111.111 is NaN) to f32.
float Fp8ToFloat(std::uint8_t value);

/// Dequantises `values` consecutive values (a multiple of the type's block) stored as ggml lays
/// them out (ggml-quants.c) into `out`, f32 [values].
void Dequantise(spec::GgufType type, const std::byte* data, std::int64_t values, float* out);

}  // namespace quail::infer
