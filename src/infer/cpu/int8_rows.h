#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace quail::infer::cpu {

/// A matrix [rows, columns] in signed bytes with a scale a row: value = scale * code.
struct Int8Matrix {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;       ///< [rows]; NaN where the row has a value that is not finite
  std::vector<std::int32_t> sums;  ///< [rows], of the codes
};

/// Codes are within +-`limit`, which the largest value of a row becomes. `values`: f32 [rows,
/// columns].
Int8Matrix QuantiseRows(std::span<const float> values, std::size_t columns, std::int32_t limit);

}  // namespace quail::infer::cpu
