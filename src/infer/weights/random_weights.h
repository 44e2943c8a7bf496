#pragma once

#include <cstdint>
#include <memory>

#include "infer/weights/weight_source.h"
#include "spec/model_spec.h"

namespace quail::infer {

/// Made-up weights of any shape, for tests and benchmarks: each value is computed when read,
/// nothing is stored. Value i (row-major) of the tensor with HF name `name`, in 64-bit wrapping
/// arithmetic:
///
///   key = FNV-1a-64(name) xor seed
///   z = key + (i + 1) * 0x9E3779B97F4A7C15                          (SplitMix64, Steele et al.
///   2014) z = (z xor (z >> 30)) * 0xBF58476D1CE4E5B9 z = (z xor (z >> 27)) * 0x94D049BB133111EB z
///   = z xor (z >> 31) u = (z >> 40) / 2^23 - 1                                        exact in
///   f32, in [-1, 1) value = offset + f32(scale) * u                                 rounded to f32
///   after each operation
///
/// Matrices: offset 0, scale sqrt(3 / columns), the embedding sqrt(3); norms: offset 1, scale 0.25;
/// biases: offset 0, scale 0.25.
std::shared_ptr<const WeightSource> CreateRandomWeights(const spec::ModelSpec& spec,
                                                        std::uint64_t seed);

}  // namespace quail::infer
