#pragma once

#include "model_fixture.h"

/// What the GPU tests allow, in one place. Steps are relative to a value; tolerances are shares of
/// the reference's standard deviation.
namespace quail::parity {

constexpr double kTiny = 1e-6;
/// A value rounded to bf16 (half a step of 2^-8) after fp32 arithmetic.
constexpr double kBf16Step = 0.0042;
/// A value rounded to e4m3 (half a step of 2^-3), and half the smallest step (2^-9) of its block.
constexpr double kFp8Step = 0.0656;
constexpr double kFp8SmallStep = 0.00102;

/// Softmax weights and outputs in bf16: rows with one key have values of several deviations.
constexpr Tolerance kAttentionBf16{0.08, 0.005};
/// The same as a share of the largest of 128 values, before they are rounded to fp8.
constexpr double kAttentionSlack = 0.005;
/// fp8 products: bf16 output, and tensor cores that add 128 products with some 14 bits.
constexpr Tolerance kFp8Product{0.04, 0.003};
/// A tiny model in bf16.
constexpr Tolerance kModelBf16{0.2, 0.05};
/// A tiny model in block fp8 beside a reference that rounds activations alike: where the two differ
/// before the rounding, a value can fall to the next of e4m3's steps.
constexpr Tolerance kModelFp8{0.5, 0.15};
/// The same beside a reference that does not round activations.
constexpr Tolerance kModelFp8ExactActivations{0.6, 0.2};

}  // namespace quail::parity
