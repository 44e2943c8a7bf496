#pragma once

#include <immintrin.h>

#include <cstdint>

#include "infer/cpu/lane_softmax.h"

namespace quail::infer::cpu {
namespace {

/// Unnormalised f32 output of one row [width], a multiple of 16.
struct OutputRow {
  float* values;
  std::int32_t width;
};

/// Brings a row's sums and output to a new maximum; `factor` is 2^(old - new) in every lane.
inline void Rescale(LaneSoftmax& state, float max, __m512 factor, OutputRow output) {
  _mm512_storeu_ps(state.sums.data(), _mm512_mul_ps(_mm512_loadu_ps(state.sums.data()), factor));
  for (std::int32_t i = 0; i < output.width; i += 16) {
    _mm512_storeu_ps(output.values + i, _mm512_mul_ps(_mm512_loadu_ps(output.values + i), factor));
  }
  state.max = max;
}

}  // namespace
}  // namespace quail::infer::cpu
