#include "cuda_tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

// Case 64: what the tolerances of the GPU tests must not let through. The faults are planted in
// right results here, so this needs no GPU.
namespace quail::parity {
namespace {

constexpr std::size_t kRows = 129;
constexpr std::size_t kColumns = 256;

/// What a launcher writes, [kRows, kColumns]: right but for bf16's rounding.
std::vector<double> Output() {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> output(kRows * kColumns);
  for (double& value : output) value = normal(random);
  return output;
}

std::vector<float> RoundedToBf16(const std::vector<double>& values) {
  std::vector<float> rounded;
  for (const double value : values) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    rounded.push_back(static_cast<float>(std::ldexp(std::round(fraction * 256) / 256, exponent)));
  }
  return rounded;
}

struct Fault {
  const char* name;
  std::function<void(std::vector<float>&)> plant;
};

std::vector<Fault> Faults() {
  return {
      {"zeros", [](std::vector<float>& v) { std::ranges::fill(v, 0.0F); }},
      {"a transposed tile of 16 by 16",
       [](std::vector<float>& v) {
         for (std::size_t i = 0; i < 16; ++i) {
           for (std::size_t j = 0; j < i; ++j) std::swap(v[i * kColumns + j], v[j * kColumns + i]);
         }
       }},
      {"a block's scale that is rounded up to a power of two",
       [](std::vector<float>& v) {
         for (std::size_t i = 0; i < 128; ++i) {
           for (std::size_t j = 0; j < 128; ++j) v[i * kColumns + j] *= 1.5F;
         }
       }},
      {"scales of the next row",
       [](std::vector<float>& v) {
         for (std::size_t i = 0; i < kRows; ++i) {
           const float wrong = i % 2 == 0 ? 1.1F : 1 / 1.1F;
           for (std::size_t j = 0; j < kColumns; ++j) v[i * kColumns + j] *= wrong;
         }
       }},
      {"a last row that nobody wrote",
       [](std::vector<float>& v) { std::fill(v.end() - kColumns, v.end(), 0.0F); }},
      {"one NaN", [](std::vector<float>& v) { v[77] = std::nanf(""); }},
  };
}

bool Passes(const std::vector<float>& got, const std::vector<double>& wanted,
            const Tolerance& tolerance) {
  const ErrorShare error = MeasureError<float>(got, wanted);
  return error.largest <= tolerance.largest && error.rms <= tolerance.rms;
}

TEST(CudaTolerance, Case64FaultsOfALauncherAreOutside) {
  const std::vector<double> wanted = Output();
  for (const Tolerance& tolerance : {kFp8Product, kAttentionBf16}) {
    EXPECT_TRUE(Passes(RoundedToBf16(wanted), wanted, tolerance));
    for (const Fault& fault : Faults()) {
      std::vector<float> got = RoundedToBf16(wanted);
      fault.plant(got);
      EXPECT_FALSE(Passes(got, wanted, tolerance)) << fault.name;
    }
  }
}

TEST(CudaTolerance, Case64AModelThatAnswersNothingIsOutside) {
  const std::vector<double> wanted = Output();
  const std::vector<double> other(wanted.rbegin(), wanted.rend());
  for (const Tolerance& tolerance : {kModelBf16, kModelFp8, kModelFp8ExactActivations}) {
    EXPECT_FALSE(Passes(std::vector<float>(wanted.size()), wanted, tolerance)) << "zeros";
    EXPECT_FALSE(Passes(RoundedToBf16(other), wanted, tolerance)) << "another row's answers";
  }
}

}  // namespace
}  // namespace quail::parity
