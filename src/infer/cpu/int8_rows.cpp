#include "infer/cpu/int8_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace quail::infer::cpu {
namespace {

/// To the nearest integer, of |x| < 2^22: the sum's low bits hold it. Loops of it become vectors on
/// every processor.
std::int32_t Round(float x) {
  return std::bit_cast<std::int32_t>(x + 0x1.8p23F) - std::bit_cast<std::int32_t>(0x1.8p23F);
}

}  // namespace

Int8Matrix QuantiseRows(std::span<const float> values, std::size_t columns, std::int32_t limit) {
  Int8Matrix rows;
  rows.codes.resize(values.size());
  const auto most = static_cast<float>(limit);
  for (std::size_t begin = 0; begin < values.size(); begin += columns) {
    const std::span<const float> row = values.subspan(begin, columns);
    float largest = 0;
    float not_finite = 0;  // or NaN
    for (const float value : row) {
      largest = std::max(largest, std::abs(value));
      not_finite += value * 0.0F;
    }
    const float inverse = largest > 0 && not_finite == 0 ? most / largest : 0;
    std::int8_t* codes = rows.codes.data() + begin;
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::int32_t code = Round(row[i] * inverse);
      codes[i] = static_cast<std::int8_t>(code);
      sum += codes[i];
    }
    rows.scales.push_back(largest / most + not_finite);
    rows.sums.push_back(sum);
  }
  return rows;
}

}  // namespace quail::infer::cpu
