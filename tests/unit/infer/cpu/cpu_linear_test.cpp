#include "infer/cpu/cpu_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "infer/cpu/bf16_kernels.h"
#include "infer/weights/block_formats.h"
#include "infer/weights/random_weights.h"

namespace quail::infer::cpu {
namespace {

spec::ModelSpec SmolSpec() {
  spec::ModelSpec spec;
  spec.layers = 1;
  spec.hidden = 576;
  spec.heads = 9;
  spec.kv_heads = 3;
  spec.head_dim = 64;
  spec.ffn = 1536;
  spec.vocabulary = 64;
  return spec;
}

struct Case {
  ElementType type = ElementType::kF32;
  ProductType products = ProductType::kElements;
};

class CpuLinear : public testing::TestWithParam<Case> {
 protected:
  // int8 products of bf16 activations need no bf16 units.
  void SetUp() override {
    if (Type() == ElementType::kBf16 && GetParam().products == ProductType::kElements &&
        SupportedBf16Units().empty()) {
      GTEST_SKIP() << "skipped: no bf16 products here";
    }
  }
  static ElementType Type() { return GetParam().type; }
  static LinearEngine Engine() { return LinearEngine(Type(), GetParam().products); }
  LinearWeight Pack(LinearEngine& engine, const char* name) {
    const auto tensor = weights_->Find(name);
    return engine.Pack(std::span(&tensor, 1));
  }

  /// kMaxProductRows different rows.
  static std::vector<std::byte> Rows(std::size_t columns) {
    std::vector<std::byte> x(kMaxProductRows * columns * SizeOf(Type()));
    for (std::size_t i = 0; i < kMaxProductRows * columns; ++i) {
      const float value = static_cast<float>((i * 7919) % 1000) / 500.0F - 1.0F;
      if (Type() == ElementType::kF32) {
        reinterpret_cast<float*>(x.data())[i] = value;
      } else {
        reinterpret_cast<std::uint16_t*>(x.data())[i] = FloatToBf16(value);
      }
    }
    return x;
  }

  std::shared_ptr<const WeightSource> weights_ = CreateRandomWeights(SmolSpec(), 1);
};

TEST_P(CpuLinear, ARowIsTheSameBitsWhateverTheRowsOfTheCallAndItsPlace) {
  LinearEngine engine = Engine();
  for (const char* name :
       {"model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.self_attn.k_proj.weight"}) {
    const LinearWeight weight = Pack(engine, name);
    const auto columns = static_cast<std::size_t>(weight.columns());
    const auto width = static_cast<std::size_t>(weight.rows());
    const std::vector<std::byte> x = Rows(columns);
    for (const bool accumulate : {false, true}) {
      const auto product = [&](std::size_t first, std::size_t count) {
        std::vector<float> y(count * width, 0.25F);
        ProductScratch scratch;
        const LinearEngine::Input rows =
            engine.Prepare(x.data() + first * columns * SizeOf(Type()),
                           static_cast<std::int64_t>(count), weight.columns(), scratch);
        engine.Multiply(weight.panels()[0], {rows, y.data(), accumulate}, scratch);
        return y;
      };
      const std::vector<float> all = product(0, kMaxProductRows);
      for (std::int64_t rows = 1; rows <= kMaxProductRows; ++rows) {
        const auto count = static_cast<std::size_t>(engine.ProductRows(rows));
        ASSERT_GE(count, static_cast<std::size_t>(rows));
        for (const std::size_t first : {std::size_t{0}, (kMaxProductRows - count) / 2}) {
          const std::vector<float> some = product(first, count);
          EXPECT_TRUE(std::equal(some.begin(), some.end(),
                                 all.begin() + static_cast<std::ptrdiff_t>(first * width)))
              << name << " " << count << " rows from " << first;
        }
      }
    }
  }
}

TEST_P(CpuLinear, FewRowsDoNotPayForMany) {
  LinearEngine engine = Engine();
  Pack(engine, "model.layers.0.mlp.down_proj.weight");
  EXPECT_LE(engine.ProductRows(1), 6);
  EXPECT_LE(engine.ProductRows(13), 24);
  EXPECT_EQ(engine.ProductRows(kMaxProductRows), kMaxProductRows);
}

TEST_P(CpuLinear, OneDnnDoesNotFallBackToItsReference) {
  LinearEngine engine = Engine();
  for (const char* name :
       {"model.layers.0.mlp.down_proj.weight", "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.self_attn.k_proj.weight"}) {
    const LinearWeight weight = Pack(engine, name);
    for (const bool accumulate : {false, true}) {
      const std::string implementation =
          engine.ImplementationOf(weight.panels()[0], weight.columns(), 96, accumulate);
      EXPECT_EQ(implementation.find("ref"), std::string::npos) << name << " " << implementation;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CpuLinear,
                         testing::Values(Case{ElementType::kF32}, Case{ElementType::kBf16},
                                         Case{ElementType::kF32, ProductType::kInt8},
                                         Case{ElementType::kBf16, ProductType::kInt8}),
                         [](const auto& parameter) {
                           const std::string type =
                               parameter.param.type == ElementType::kF32 ? "f32" : "bf16";
                           return parameter.param.products == ProductType::kInt8 ? "int8_of_" + type
                                                                                 : type;
                         });

/// Rows of values of very different size, the last all zero.
class RowsOfAllSizes final : public WeightTensor {
 public:
  const std::string& name() const override { return name_; }
  std::int64_t rows() const override { return 48; }
  std::int64_t columns() const override { return 96; }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = 0; i < columns(); ++i) {
        const auto value = static_cast<float>((row * 131 + i * 7919) % 1000) / 500.0F - 1.0F;
        *out++ = row + 1 == rows() ? 0.0F : std::ldexp(value, static_cast<int>(row % 40) - 20);
      }
    }
  }

 private:
  std::string name_ = "rows";
};

// Beside the product of the unrounded values in double precision: each rounding is off by half a
// step at most.
TEST(CpuLinearInt8, AProductIsWithinItsRoundingOfTheExactOne) {
  LinearEngine engine(ElementType::kF32, ProductType::kInt8);
  EXPECT_TRUE(engine.weight_limit() == 127 || engine.weight_limit() == 63);
  const std::shared_ptr<const WeightTensor> tensor = std::make_shared<RowsOfAllSizes>();
  const LinearWeight weight = engine.Pack(std::span(&tensor, 1));
  const std::int64_t n = weight.rows(), k = weight.columns(), rows = 5;
  std::vector<float> w(static_cast<std::size_t>(n * k));
  tensor->ReadRows(0, n, w.data());
  std::vector<float> x(static_cast<std::size_t>(kMaxProductRows * k));
  for (std::int64_t i = 0; i < rows * k; ++i) {
    // Of one sign, of both, of almost one value, large, and nothing at all.
    const auto value = static_cast<float>((i * 104729) % 997) / 997.0F;
    const float row[] = {value, value - 0.3F, 5 + 1e-3F * value, 1e6F * (value - 0.9F), 0};
    x[static_cast<std::size_t>(i)] = row[i / k];
  }
  ProductScratch scratch;
  std::vector<float> y(static_cast<std::size_t>(kMaxProductRows * n), 100.0F);
  const LinearEngine::Input input =
      engine.Prepare(reinterpret_cast<const std::byte*>(x.data()), rows, k, scratch);
  engine.Multiply(weight.panels()[0], {input, y.data(), false}, scratch);
  engine.Multiply(weight.panels()[0], {input, y.data(), true}, scratch);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* xs = x.data() + i * k;
    const auto [least, most] = std::minmax_element(xs, xs + k);
    const double x_step = (std::max(*most, 0.0F) - std::min(*least, 0.0F)) / 255.0;
    for (std::int64_t j = 0; j < n; ++j) {
      const float* ws = w.data() + j * k;
      double largest = 0, exact = 0, x_sum = 0, w_sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        largest = std::max(largest, std::abs(static_cast<double>(ws[l])));
        exact += static_cast<double>(xs[l]) * static_cast<double>(ws[l]);
        x_sum += std::abs(static_cast<double>(xs[l]));
        w_sum += std::abs(static_cast<double>(ws[l]));
      }
      const double w_step = largest / engine.weight_limit();
      // The zero is rounded too: the ends of the range can be off by half a step more.
      const double bound = x_step * w_sum + w_step / 2 * (x_sum + static_cast<double>(k) * x_step);
      const double got = y[static_cast<std::size_t>(i * n + j)] / 2;
      EXPECT_NEAR(got, exact, 1.01 * bound + 1e-12) << i << " " << j;
    }
  }
}

TEST(CpuLinearInt8, WhatIsNotFiniteStaysInItsRow) {
  LinearEngine engine(ElementType::kF32, ProductType::kInt8);
  const std::shared_ptr<const WeightTensor> tensor = std::make_shared<RowsOfAllSizes>();
  const LinearWeight weight = engine.Pack(std::span(&tensor, 1));
  const auto n = static_cast<std::size_t>(weight.rows());
  const auto k = static_cast<std::size_t>(weight.columns());
  const auto product = [&](float odd) {
    std::vector<float> x(kMaxProductRows * k, 0.5F);
    x[k + 17] = odd;
    std::vector<float> y(kMaxProductRows * n);
    ProductScratch scratch;
    const auto input = engine.Prepare(reinterpret_cast<const std::byte*>(x.data()), 3,
                                      static_cast<std::int64_t>(k), scratch);
    engine.Multiply(weight.panels()[0], {input, y.data(), false}, scratch);
    return y;
  };
  const std::vector<float> whole = product(0.5F);
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> y = product(odd);
    for (std::size_t j = 0; j < n; ++j) {
      EXPECT_EQ(y[j], whole[j]);
      EXPECT_TRUE(std::isnan(y[n + j])) << j;
      EXPECT_EQ(y[2 * n + j], whole[2 * n + j]);
    }
  }
}

}  // namespace
}  // namespace quail::infer::cpu
