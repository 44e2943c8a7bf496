#include "infer/weights/fp8_block_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "infer/weights/block_formats.h"

namespace quail::infer {
namespace {

constexpr std::int64_t kRows = 256;
constexpr std::int64_t kColumns = 384;

/// A matrix whose blocks have magnitudes of very different sizes.
class Matrix final : public WeightTensor {
 public:
  explicit Matrix(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  std::int64_t rows() const override { return kRows; }
  std::int64_t columns() const override { return kColumns; }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t column = 0; column < kColumns; ++column) {
        const std::int64_t block = row / 128 * 3 + column / 128;
        const auto wave =
            static_cast<float>(std::sin(0.37 * static_cast<double>(row * 31 + column)));
        *out++ = wave * std::ldexp(0.7F, static_cast<int>(block) * 3 - 8);
      }
    }
  }

 private:
  std::string name_;
};

class Matrices final : public WeightSource {
 public:
  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    return std::make_shared<Matrix>(std::string(hf_name));
  }
  base::Hash128 hash() const override { return base::HashBytes("matrices"); }
};

std::vector<float> ValuesOf(const WeightTensor& tensor) {
  std::vector<float> values(kRows * kColumns);
  tensor.ReadRows(0, kRows, values.data());
  return values;
}

std::vector<float> ScalesOf(const WeightTensor& tensor) {
  const auto data = tensor.fp8_block_data();
  EXPECT_TRUE(data.has_value() && !data->scales_are_bf16);
  std::vector<float> scales(data->scales.size() / 4);
  std::memcpy(scales.data(), data->scales.data(), data->scales.size());
  return scales;
}

/// The largest magnitude of each block, row-major.
std::vector<float> LargestOf(const std::vector<float>& values) {
  std::vector<float> largest(kRows / 128 * (kColumns / 128));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = i / kColumns / 128 * 3 + i % kColumns / 128;
    largest[block] = std::max(largest[block], std::fabs(values[i]));
  }
  return largest;
}

/// Each value is the e4m3 nearest to the wanted one at its block's scale.
void ExpectNearest(const WeightTensor& tensor, const std::vector<float>& wanted) {
  const auto values = ValuesOf(tensor);
  const auto scales = ScalesOf(tensor);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const float scale = scales[i / kColumns / 128 * 3 + i % kColumns / 128];
    float nearest = 0;
    for (int code = 0; code < 256; ++code) {
      const float value = Fp8ToFloat(static_cast<std::uint8_t>(code)) * scale;
      if (std::fabs(value - wanted[i]) < std::fabs(nearest - wanted[i])) nearest = value;
    }
    ASSERT_LE(std::fabs(values[i] - wanted[i]), std::fabs(nearest - wanted[i]) * 1.000001F) << i;
  }
}

constexpr const char* kLinear = "model.layers.0.mlp.up_proj.weight";

TEST(Fp8BlockWeights, AScaleIsTheLargestMagnitudeOver448) {
  const auto source = std::make_shared<Matrices>();
  const auto wanted = ValuesOf(*source->Find(kLinear));
  const auto tensor = QuantizeToFp8Blocks(source)->Find(kLinear);
  const auto largest = LargestOf(wanted);
  const auto scales = ScalesOf(*tensor);
  for (std::size_t i = 0; i < largest.size(); ++i) EXPECT_EQ(scales[i], largest[i] / 448.0F);
  ExpectNearest(*tensor, wanted);
}

TEST(Fp8BlockWeights, RequantisedToPowersOfTwoAsUe8m0EnginesLoadACheckpoint) {
  const auto checkpoint = QuantizeToFp8Blocks(std::make_shared<Matrices>());
  const auto wanted = ValuesOf(*checkpoint->Find(kLinear));
  const auto rounded = QuantizeToFp8Blocks(checkpoint, BlockScale::kPowerOfTwo);
  const auto tensor = rounded->Find(kLinear);
  const auto largest = LargestOf(wanted);
  const auto scales = ScalesOf(*tensor);
  for (std::size_t i = 0; i < largest.size(); ++i) {
    int exponent = 0;
    EXPECT_EQ(std::frexp(scales[i], &exponent), 0.5F);
    EXPECT_GE(scales[i], largest[i] / 448.0F);
    EXPECT_LT(scales[i], largest[i] / 224.0F);
  }
  ExpectNearest(*tensor, wanted);
  EXPECT_EQ(ValuesOf(*QuantizeToFp8Blocks(rounded, BlockScale::kPowerOfTwo)->Find(kLinear)),
            ValuesOf(*tensor));
}

TEST(Fp8BlockWeights, OtherTensorsPassAndTheHashTellsTheRoundingsApart) {
  const auto source = std::make_shared<Matrices>();
  const auto exact = QuantizeToFp8Blocks(source);
  const auto rounded = QuantizeToFp8Blocks(source, BlockScale::kPowerOfTwo);
  EXPECT_FALSE(exact->Find("model.embed_tokens.weight")->fp8_block_data().has_value());
  EXPECT_NE(exact->hash(), rounded->hash());
  EXPECT_NE(exact->hash(), source->hash());
}

}  // namespace
}  // namespace quail::infer
