#include "infer/weights/block_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test_paths.h"

namespace quail::infer {
namespace {

using spec::GgufType;

class BlockFormats : public testing::TestWithParam<GgufType> {};

// tools/dump_block_formats.py: values by the gguf package.
TEST_P(BlockFormats, EqualTheGgufPackage) {
  std::ifstream stream(QUAIL_SOURCE_DIR "/tests/data/gguf_blocks.json");
  const auto cases = nlohmann::json::parse(stream);
  const auto& golden = cases.at(std::string(spec::NameOf(GetParam())));
  const auto hex = golden["bytes"].get<std::string>();
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  const auto wanted = golden["values"].get<std::vector<float>>();
  ASSERT_EQ(static_cast<std::int64_t>(bytes.size()) / spec::BlockOf(GetParam()).bytes *
                spec::BlockOf(GetParam()).values,
            static_cast<std::int64_t>(wanted.size()));
  std::vector<float> values(wanted.size());
  Dequantise(GetParam(), bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(values[i], wanted[i], 1e-6F * std::abs(wanted[i])) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Types, BlockFormats,
                         testing::Values(GgufType::kQ4_0, GgufType::kQ4_1, GgufType::kQ5_0,
                                         GgufType::kQ8_0, GgufType::kQ4_K, GgufType::kQ6_K,
                                         GgufType::kF16, GgufType::kBf16),
                         [](const auto& parameter) {
                           return std::string(spec::NameOf(parameter.param));
                         });

TEST(BlockFormats, EveryHalfIsItsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10) & 31;
    const int mantissa = static_cast<int>(bits) & 1023;
    const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
    const float value = HalfToFloat(static_cast<std::uint16_t>(bits));
    if (exponent == 31 && mantissa != 0) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      continue;
    }
    const float wanted = exponent == 31 ? std::numeric_limits<float>::infinity()
                         : exponent == 0
                             ? std::ldexp(static_cast<float>(mantissa), -24)
                             : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
    EXPECT_EQ(value, sign * wanted) << bits;
  }
}

TEST(BlockFormats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(FloatToBf16(1.0F), 0x3F80);
  EXPECT_EQ(FloatToBf16(1.00390625F), 0x3F80);  // half way, to the even one below
  EXPECT_EQ(FloatToBf16(1.01171875F), 0x3F82);  // half way, to the even one above
  EXPECT_EQ(FloatToBf16(1.00390637F), 0x3F81);  // just above half way
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(Bf16ToFloat(FloatToBf16(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
}

TEST(BlockFormats, Fp8OfTheOcpTable) {
  EXPECT_EQ(Fp8ToFloat(0x00), 0.0F);
  EXPECT_EQ(Fp8ToFloat(0x01), 0x1p-9F);
  EXPECT_EQ(Fp8ToFloat(0x08), 0x1p-6F);
  EXPECT_EQ(Fp8ToFloat(0x38), 1.0F);
  EXPECT_EQ(Fp8ToFloat(0xC0), -2.0F);
  EXPECT_EQ(Fp8ToFloat(0x7E), 448.0F);
  EXPECT_TRUE(std::isnan(Fp8ToFloat(0x7F)));
}

}  // namespace
}  // namespace quail::infer
