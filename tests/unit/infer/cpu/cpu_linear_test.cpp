#include "infer/cpu/cpu_linear.h"

#include <gtest/gtest.h>

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

class CpuLinear : public testing::TestWithParam<ElementType> {
 protected:
  void SetUp() override {
    if (GetParam() == ElementType::kBf16 && SupportedBf16Units().empty()) {
      GTEST_SKIP() << "skipped: no bf16 products here";
    }
  }
  LinearWeight Pack(LinearEngine& engine, const char* name) {
    const auto tensor = weights_->Find(name);
    return engine.Pack(std::span(&tensor, 1));
  }

  /// kMaxProductRows different rows.
  static std::vector<std::byte> Rows(std::size_t columns) {
    std::vector<std::byte> x(kMaxProductRows * columns * SizeOf(GetParam()));
    for (std::size_t i = 0; i < kMaxProductRows * columns; ++i) {
      const float value = static_cast<float>((i * 7919) % 1000) / 500.0F - 1.0F;
      if (GetParam() == ElementType::kF32) {
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
  LinearEngine engine(GetParam());
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
        std::vector<std::byte> scratch;
        engine.Multiply(weight.panels()[0], weight.columns(),
                        {static_cast<std::int64_t>(count),
                         x.data() + first * columns * SizeOf(GetParam()), y.data(), accumulate},
                        scratch);
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
  LinearEngine engine(GetParam());
  Pack(engine, "model.layers.0.mlp.down_proj.weight");
  EXPECT_LE(engine.ProductRows(1), 6);
  EXPECT_LE(engine.ProductRows(13), 24);
  EXPECT_EQ(engine.ProductRows(kMaxProductRows), kMaxProductRows);
}

TEST_P(CpuLinear, OneDnnDoesNotFallBackToItsReference) {
  LinearEngine engine(GetParam());
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

INSTANTIATE_TEST_SUITE_P(Types, CpuLinear, testing::Values(ElementType::kF32, ElementType::kBf16),
                         [](const auto& parameter) {
                           return parameter.param == ElementType::kF32 ? "f32" : "bf16";
                         });

}  // namespace
}  // namespace quail::infer::cpu
