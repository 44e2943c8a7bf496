#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "cuda_tolerance.h"
#include "guarded_memory.h"
#include "infer/cuda/launch.h"
#include "infer/weights/block_formats.h"

/// Values that the tests of single launchers put in and read back.
namespace quail::parity {

using infer::BlockScale;
using infer::cuda::Activation;

/// Row counts around the tiles' borders.
constexpr std::int32_t kRaggedRows[] = {0, 1, 63, 64, 65, 127, 129};

inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }
inline float ToFloat(__nv_fp8_e4m3 value) { return infer::Fp8ToFloat(value.__x); }

inline std::vector<__nv_bfloat16> RandomBf16(std::size_t count, std::uint32_t seed,
                                             float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<__nv_bfloat16> values(count);
  for (auto& value : values) value = __float2bfloat16(normal(random));
  return values;
}

inline std::vector<double> ToDouble(std::span<const __nv_bfloat16> values) {
  std::vector<double> result;
  for (const auto value : values) result.push_back(static_cast<double>(ToFloat(value)));
  return result;
}

/// An activation [rows, columns] in bf16 or fp8, read back as numbers.
class ActivationOut {
 public:
  ActivationOut(std::int32_t rows, std::int32_t columns, bool fp8)
      : rows_(rows), columns_(columns), fp8_(fp8), pitch_((rows + 3) / 4 * 4) {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    if (fp8) {
      values_ = Guarded<__nv_fp8_e4m3>(count);
      scales_ = Guarded<float>(static_cast<std::size_t>(pitch_ * columns / 128));
    } else {
      bf16_ = Guarded<__nv_bfloat16>(count);
    }
  }

  Activation get() {
    if (!fp8_) return {bf16_.get(), nullptr, nullptr, 0};
    return {nullptr, values_.get(), scales_.get(), pitch_};
  }

  /// Checks every value: bf16 to its rounding, fp8 to a step of its block's scale. `slack`: what
  /// the values before the rounding may be off by, as a share of their block's largest.
  void ExpectNear(std::span<const double> wanted, BlockScale rounding, double slack = 0) const {
    if (!fp8_) {
      ExpectBf16(bf16_.Read(), wanted);
      return;
    }
    const auto values = values_.Read();
    const auto scales = scales_.Read();
    for (std::int32_t row = 0; row < rows_; ++row) {
      for (std::int32_t block = 0; block < columns_ / 128; ++block) {
        const auto at = static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                        static_cast<std::size_t>(block) * 128;
        ExpectFp8Block(std::span(values).subspan(at, 128), wanted.subspan(at, 128),
                       static_cast<double>(scales[static_cast<std::size_t>(block * pitch_ + row)]),
                       rounding, slack);
      }
    }
  }

  static void ExpectBf16(std::span<const __nv_bfloat16> got, std::span<const double> wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(ToFloat(got[i])), wanted[i],
                  kBf16Step * std::abs(wanted[i]) + kTiny)
          << i;
    }
  }

 private:
  static void ExpectFp8Block(std::span<const __nv_fp8_e4m3> got, std::span<const double> wanted,
                             double scale, BlockScale rounding, double slack) {
    double amax = 0;
    for (const double value : wanted) amax = std::max(amax, std::abs(value));
    const double exact = amax / 448;
    if (rounding == BlockScale::kExact) {
      ASSERT_NEAR(scale, exact, (1e-3 + slack) * exact);
    } else {
      ASSERT_EQ(std::log2(scale), std::floor(std::log2(scale)));
      ASSERT_GE(scale, (0.999 - slack) * exact);
      ASSERT_LE(scale, (2.001 + 2 * slack) * exact);
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(ToFloat(got[i])) * scale, wanted[i],
                  kFp8Step * std::abs(wanted[i]) + kFp8SmallStep * scale + slack * amax)
          << i;
    }
  }

  std::int32_t rows_;
  std::int32_t columns_;
  bool fp8_;
  std::int64_t pitch_;
  Guarded<__nv_bfloat16> bf16_;
  Guarded<__nv_fp8_e4m3> values_;
  Guarded<float> scales_;
};

}  // namespace quail::parity
