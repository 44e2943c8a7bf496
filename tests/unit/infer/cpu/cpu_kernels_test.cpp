#include "infer/cpu/cpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "infer/weights/block_formats.h"
#include "made_up_values.h"

namespace quail::infer::cpu {
namespace {

class CpuKernelsTest : public testing::TestWithParam<Isa> {
 protected:
  const CpuKernels& kernels_ = SelectKernels(GetParam());
};

TEST_P(CpuKernelsTest, ProductsOfEveryHeight) {
  constexpr std::int32_t kDepth = 37, kHeight = 14;
  const std::vector<float> a = Values(kHeight * kDepth, 1);
  const std::vector<float> b = Values(kDepth * 64, 2);
  for (std::int32_t m = 1; m <= kHeight; ++m) {
    std::vector<float> c(kHeight * 64, -7.0F);
    kernels_.product64(m, kDepth, a.data(), kDepth, b.data(), 64, c.data(), 64, false);
    kernels_.product64(m, kDepth, a.data(), kDepth, b.data(), 64, c.data(), 64, true);
    for (std::int32_t i = 0; i < kHeight; ++i) {
      for (std::int32_t j = 0; j < 64; ++j) {
        double wanted = 0;
        for (std::int32_t l = 0; l < kDepth; ++l) {
          wanted += static_cast<double>(a[static_cast<std::size_t>(i * kDepth + l)]) *
                    static_cast<double>(b[static_cast<std::size_t>(l * 64 + j)]);
        }
        const float got = c[static_cast<std::size_t>(i * 64 + j)];
        // Rows past m are a sentinel.
        EXPECT_NEAR(got, i < m ? 2 * wanted : -7.0, 2e-5) << m << " " << i << " " << j;
      }
    }
  }
}

TEST_P(CpuKernelsTest, BytesOfARowAreWithinHalfAStepOfIt) {
  for (const std::int32_t n : {1, 3, 8, 17, 64, 101}) {
    for (const float shift : {-2.0F, -0.5F, 0.0F, 2.0F}) {
      std::vector<float> x = Values(static_cast<std::size_t>(n), 5);
      for (float& value : x) value += shift;
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(n) + 1, 77);
      const RowCode row = kernels_.quantise(x.data(), n, codes.data());
      EXPECT_EQ(codes.back(), 77);
      EXPECT_GE(row.zero, 0);
      EXPECT_LE(row.zero, 255);
      const auto [least, most] = std::ranges::minmax(x);
      const float range = std::max(most, 0.0F) - std::min(least, 0.0F);
      EXPECT_NEAR(row.scale, range / 255, 1e-6 * range);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float read = row.scale * static_cast<float>(codes[i] - row.zero);
        // The end of the range may be a rounded zero farther off.
        EXPECT_NEAR(read, x[i], 1.001F * row.scale) << n << " " << shift << " " << i;
      }
    }
  }
}

TEST_P(CpuKernelsTest, BytesOfBf16AreThoseOfTheRoundedRow) {
  for (const std::size_t n : {1U, 3U, 8U, 17U, 64U, 101U}) {
    for (const float last : {0.3F, -1e-39F, 3.4e38F, std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x = Values(n, 7);
      x.back() = last;
      const auto count = static_cast<std::int32_t>(n);
      std::vector<std::uint16_t> halves(n);
      std::vector<float> rounded(n);
      std::vector<std::uint8_t> wanted(n), codes(n + 1, 77);
      kernels_.to_bf16(x.data(), count, halves.data());
      kernels_.from_bf16(halves.data(), count, rounded.data());
      const RowCode row = kernels_.quantise(rounded.data(), count, wanted.data());
      const RowCode got = kernels_.quantise_as_bf16(x.data(), count, codes.data());
      EXPECT_EQ(got.zero, row.zero) << n << " " << last;
      EXPECT_EQ(std::isnan(got.scale), std::isnan(row.scale)) << n << " " << last;
      if (!std::isnan(row.scale)) {
        EXPECT_EQ(got.scale, row.scale) << n << " " << last;
      }
      EXPECT_EQ(codes.back(), 77);
      codes.pop_back();
      EXPECT_EQ(codes, wanted) << n << " " << last;
    }
  }
}

TEST_P(CpuKernelsTest, SumsOfBytesBecomeProducts) {
  constexpr std::int32_t kWidth = 37;
  std::vector<std::int32_t> sums, weight_sums;
  for (std::int32_t i = 0; i < kWidth; ++i) {
    sums.push_back(i * 90001 - 700000);
    weight_sums.push_back(i * 313 - 5000);
  }
  const std::vector<float> scales = Values(kWidth, 6);
  const RowCode x{0.03F, 131};
  for (const bool accumulate : {false, true}) {
    std::vector<float> y(kWidth + 1, 2.5F);
    kernels_.dequantise({x, sums.data(), scales.data(), weight_sums.data(), y.data(), accumulate},
                        kWidth);
    for (std::size_t i = 0; i < kWidth; ++i) {
      const double product = static_cast<double>(x.scale) * static_cast<double>(scales[i]) *
                             (sums[i] - 131.0 * weight_sums[i]);
      EXPECT_NEAR(y[i], (accumulate ? 2.5 : 0) + product, 1e-5 * std::abs(product) + 1e-5) << i;
    }
    EXPECT_EQ(y.back(), 2.5F);
  }
}

TEST_P(CpuKernelsTest, SoftmaxOverBlocksOfEveryVisibleCount) {
  for (std::int32_t visible = 1; visible <= kKeyBlock; ++visible) {
    std::vector<float> first = Values(64, 3), second = Values(64, 4);
    for (float& score : second) score += 3.0F;
    std::vector<float> output(64, 1.0F);
    SoftmaxState state;
    const std::vector<float> scores1 = first, scores2 = second;
    kernels_.softmax_block(first.data(), 64, &state, output.data(), 64);
    const float max1 = state.max;
    kernels_.softmax_block(second.data(), visible, &state, output.data(), 64);
    double sum = 0;
    for (const float score : scores1) {
      sum += std::exp(static_cast<double>(score) - static_cast<double>(state.max));
    }
    for (std::int32_t i = 0; i < visible; ++i) {
      const auto place = static_cast<std::size_t>(i);
      const double p =
          std::exp(static_cast<double>(scores2[place]) - static_cast<double>(state.max));
      EXPECT_NEAR(second[place], p, 1e-6) << visible;
      sum += p;
    }
    for (auto i = static_cast<std::size_t>(visible); i < 64; ++i) EXPECT_EQ(second[i], 0.0F);
    EXPECT_NEAR(state.sum, sum, 1e-5 * sum) << visible;
    EXPECT_NEAR(output[63], std::exp(static_cast<double>(max1) - static_cast<double>(state.max)),
                1e-6);
  }
}

TEST_P(CpuKernelsTest, SoftmaxOfExtremeScoresStaysFinite) {
  std::vector<float> scores(64, -1e30F);
  scores[5] = 1e30F;
  std::vector<float> output(64, 0.0F);
  SoftmaxState state;
  kernels_.softmax_block(scores.data(), 64, &state, output.data(), 64);
  EXPECT_EQ(scores[5], 1.0F);
  EXPECT_LT(scores[4], 1e-37F);
  EXPECT_NEAR(state.sum, 1.0F, 1e-6F);
}

TEST_P(CpuKernelsTest, SumOfExponentials) {
  std::vector<float> x = Values(203, 5);
  for (float& value : x) value *= 20.0F;
  double wanted = 0;
  for (const float value : x) wanted += std::exp(static_cast<double>(value) - 20.0);
  EXPECT_NEAR(kernels_.sum_exp(x.data(), 203, 20.0F), wanted, 1e-5 * wanted);
}

TEST_P(CpuKernelsTest, SiluRmsNormDotAndRotateOfRaggedLengths) {
  for (const std::int32_t n : {1, 3, 15, 16, 17, 33, 72}) {
    const auto size = static_cast<std::size_t>(n);
    const std::vector<float> x = Values(size, 6), y = Values(size, 7);
    std::vector<float> out(size);
    kernels_.silu_product(x.data(), y.data(), n, out.data());
    double squares = 0, dot = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double g = static_cast<double>(x[i]);
      EXPECT_NEAR(out[i], g / (1 + std::exp(-g)) * static_cast<double>(y[i]), 1e-6);
      squares += g * g;
      dot += g * static_cast<double>(y[i]);
    }
    kernels_.rms_norm(x.data(), y.data(), 1e-5F, n, out.data());
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_NEAR(
          out[i],
          static_cast<double>(x[i]) / std::sqrt(squares / n + 1e-5) * static_cast<double>(y[i]),
          2e-6);
    }
    EXPECT_NEAR(kernels_.dot(x.data(), y.data(), n), dot, 1e-5);
  }
}

TEST_P(CpuKernelsTest, Bf16RoundsAsTheScalarDoes) {
  std::vector<float> x = Values(100, 8);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = std::numeric_limits<float>::infinity();
  x[5] = 1.00390625F;
  std::vector<std::uint16_t> out(100);
  kernels_.to_bf16(x.data(), 100, out.data());
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(out[i], FloatToBf16(x[i])) << i;
  std::vector<float> back(100);
  kernels_.from_bf16(out.data(), 100, back.data());
  EXPECT_EQ(back[5], 1.0F);
}

TEST_P(CpuKernelsTest, TransposedKeysLeaveOtherColumnsAlone) {
  const std::vector<float> keys = Values(5 * 20, 9);
  std::vector<float> out(20 * 64, -7.0F);
  kernels_.transpose_keys(keys.data(), 5, 20, out.data() + 30);
  for (std::size_t i = 0; i < 20; ++i) {
    for (std::size_t key = 0; key < 64; ++key) {
      const bool inside = key >= 30 && key < 35;
      EXPECT_EQ(out[i * 64 + key], inside ? keys[(key - 30) * 20 + i] : -7.0F);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, CpuKernelsTest,
                         testing::ValuesIn(SupportedIsas().begin(), SupportedIsas().end()),
                         [](const auto& parameter) {
                           return std::string(SelectKernels(parameter.param).name);
                         });

}  // namespace
}  // namespace quail::infer::cpu
