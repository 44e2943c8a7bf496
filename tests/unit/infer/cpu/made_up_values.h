#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace quail::infer::cpu {

/// f32 [count] in [-1, 1), the same for a seed.
inline std::vector<float> Values(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  std::uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  }
  return values;
}

/// The value of a bf16.
inline double Wide(std::uint16_t value) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16));
}

}  // namespace quail::infer::cpu
