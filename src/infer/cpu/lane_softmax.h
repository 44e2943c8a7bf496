#pragma once

#include <array>
#include <numeric>

namespace quail::infer::cpu {

/// Running softmax of one row in powers of two, its sums by lane. What is added up is relative to
/// 2^max, which lags behind the largest score, so that few blocks bring the output to a new one.
struct LaneSoftmax {
  std::array<float, 16> sums{};  ///< of the weights before rounding
  float max = 0;
  bool begun = false;

  float sum() const { return std::accumulate(sums.begin(), sums.end(), 0.0F); }
};

}  // namespace quail::infer::cpu
