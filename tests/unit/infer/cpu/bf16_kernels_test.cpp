#include "infer/cpu/bf16_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "infer/weights/block_formats.h"
#include "made_up_values.h"

namespace quail::infer::cpu {
namespace {

std::vector<std::uint16_t> Halves(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint16_t> halves;
  for (const float value : Values(count, seed)) halves.push_back(FloatToBf16(value));
  return halves;
}

/// bf16 [k, 64] as [k / 2, 64, 2].
std::vector<std::uint16_t> Pairs(const std::vector<std::uint16_t>& b) {
  std::vector<std::uint16_t> pairs(b.size());
  for (std::size_t l = 0; l < b.size() / 64; ++l) {
    for (std::size_t j = 0; j < 64; ++j) {
      pairs[l / 2 * 128 + 2 * j + l % 2] = b[l * 64 + j];
    }
  }
  return pairs;
}

class Bf16KernelsTest : public testing::TestWithParam<Bf16Unit> {
 protected:
  Bf16KernelsTest() { kernels_.begin(); }
  ~Bf16KernelsTest() override { kernels_.end(); }
  const Bf16Kernels& kernels_ = SelectBf16Kernels(GetParam());
};

TEST_P(Bf16KernelsTest, ProductsOfEveryHeight) {
  constexpr std::int32_t kDepth = 96, kHeight = 70;
  const auto a = Halves((kHeight + kBf16SpareRows) * kDepth, 1);
  const auto b = Halves(kDepth * 64, 2);
  const auto pairs = Pairs(b);
  std::vector<double> wanted(kHeight * 64);
  for (std::size_t i = 0; i < kHeight; ++i) {
    for (std::size_t j = 0; j < 64; ++j) {
      for (std::size_t l = 0; l < kDepth; ++l) {
        wanted[i * 64 + j] += Wide(a[i * kDepth + l]) * Wide(b[l * 64 + j]);
      }
    }
  }
  std::vector<float> alone(kHeight * 64);
  for (std::int32_t i = 0; i < kHeight; ++i) {
    kernels_.product64({1, kDepth, a.data() + i * kDepth, kDepth, pairs.data(), 128,
                        alone.data() + i * 64, 64, false});
  }
  for (std::int32_t m = 1; m <= kHeight; ++m) {
    std::vector<float> c(kHeight * 64, -7.0F);
    kernels_.product64({m, kDepth, a.data(), kDepth, pairs.data(), 128, c.data(), 64, false});
    for (std::size_t i = 0; i < c.size(); ++i) {
      const bool written = i < static_cast<std::size_t>(m) * 64;
      EXPECT_EQ(c[i], written ? alone[i] : -7.0F) << m << " " << i << ": a row is its own";
    }
    kernels_.product64({m, kDepth, a.data(), kDepth, pairs.data(), 128, c.data(), 64, true});
    for (std::size_t i = 0; i < c.size(); ++i) {
      const bool written = i < static_cast<std::size_t>(m) * 64;
      EXPECT_NEAR(c[i], written ? 2 * wanted[i] : -7.0, 4e-5) << m << " " << i;
    }
  }
}

/// Two blocks of one row, the second with `visible` keys that lie `shift` above the first ones;
/// weights and output must be relative to one maximum whichever it is.
void ExpectSoftmax(const Bf16Kernels& kernels, std::int32_t visible, double shift) {
  std::vector<float> first(64), second(64);
  for (std::size_t i = 0; i < 64; ++i) {
    first[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7));
    second[i] = static_cast<float>(shift + std::cos(static_cast<double>(i) * 1.3));
  }
  // What is not visible must not matter.
  for (auto i = static_cast<std::size_t>(visible); i < 64; ++i) {
    second[i] = i % 2 == 0 ? 1e30F : std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<float> output(64, 1.0F);
  std::vector<std::uint16_t> weights(64);
  LaneSoftmax state;
  kernels.softmax_block({first.data(), 64, &state, output.data(), 64, weights.data()});
  const float before = state.max;
  kernels.softmax_block({second.data(), visible, &state, output.data(), 64, weights.data()});
  double largest = before, sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(visible); ++i) {
    largest = std::max<double>(largest, second[i]);
  }
  EXPECT_LE(largest - state.max, kBf16SoftmaxSlack);
  for (const float score : first) sum += std::exp2(static_cast<double>(score) - state.max);
  for (std::size_t i = 0; i < 64; ++i) {
    const bool seen = i < static_cast<std::size_t>(visible);
    const double wanted = seen ? std::exp2(static_cast<double>(second[i]) - state.max) : 0.0;
    sum += wanted;
    EXPECT_NEAR(Wide(weights[i]), wanted, wanted * 0x1p-8) << visible << " " << i;
    const double kept = std::exp2(static_cast<double>(before) - state.max);
    EXPECT_NEAR(output[i], kept, kept * 1e-5);
  }
  EXPECT_NEAR(state.sum(), sum, sum * 1e-5) << visible << " " << shift;
}

TEST_P(Bf16KernelsTest, SoftmaxOverBlocksOfEveryVisibleCount) {
  for (std::int32_t visible = 1; visible <= kKeyBlock; ++visible) {
    for (const double shift : {-30.0, 0.0, 3.0, 7.5, 20.0}) {
      ExpectSoftmax(kernels_, visible, shift);
    }
  }
}

TEST_P(Bf16KernelsTest, SoftmaxOfExtremeScores) {
  std::vector<float> scores(64, -3e4F);
  scores[5] = 3e4F;
  std::vector<float> output(64, 0.0F);
  std::vector<std::uint16_t> weights(64);
  LaneSoftmax state;
  kernels_.softmax_block({scores.data(), 64, &state, output.data(), 64, weights.data()});
  EXPECT_NEAR(state.sum(), 1.0F, 1e-5F);
  EXPECT_EQ(Wide(weights[5]), 1.0);
  EXPECT_LT(Wide(weights[6]), 1e-30);
  scores[9] = std::numeric_limits<float>::quiet_NaN();
  kernels_.softmax_block({scores.data(), 64, &state, output.data(), 64, weights.data()});
  EXPECT_TRUE(std::isnan(state.sum())) << "a NaN must reach the answer";
}

TEST_P(Bf16KernelsTest, PackingLosesNothing) {
  for (const std::int32_t width : {32, 64, 96, 128}) {
    const auto rows = Halves(static_cast<std::size_t>(64 * width), 3);
    std::vector<std::uint16_t> keys(rows.size()), values(rows.size());
    kernels_.pack_keys(rows.data(), width, keys.data());
    kernels_.pack_values(rows.data(), width, values.data());
    for (std::int32_t row = 0; row < 64; ++row) {
      for (std::int32_t i = 0; i < width; ++i) {
        const std::uint16_t wanted = rows[static_cast<std::size_t>(row * width + i)];
        const std::int32_t key = i / 2 * 128 + 2 * row + i % 2;
        const std::int32_t value = row / 2 * 2 * width + 2 * i + row % 2;
        ASSERT_EQ(keys[static_cast<std::size_t>(key)], wanted) << row << " " << i;
        ASSERT_EQ(values[static_cast<std::size_t>(value)], wanted) << row << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, Bf16KernelsTest, testing::ValuesIn(SupportedBf16Units()),
                         [](const auto& unit) {
                           return std::string(SelectBf16Kernels(unit.param).name);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Bf16KernelsTest);

TEST(Bf16Units, AreTestedWhereThisProcessorHasThem) {
  if (SupportedBf16Units().empty()) GTEST_SKIP() << "skipped: no bf16 products here";
  EXPECT_EQ(SupportedBf16Units().front(), Bf16Unit::kAvx512);
}

}  // namespace
}  // namespace quail::infer::cpu
