#include "spec/roofline.h"

#include <gtest/gtest.h>

namespace quail::spec {
namespace {

ModelSpec Qwen3Of4B() {
  ModelSpec model;
  model.family = ModelFamily::kQwen3;
  model.weight_type = WeightType::kFp8Block;
  model.layers = 36;
  model.hidden = 2560;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn = 9728;
  return model;
}

ModelSpec Qwen3Of32B() {
  ModelSpec model = Qwen3Of4B();
  model.layers = 64;
  model.hidden = 5120;
  model.heads = 64;
  model.ffn = 25600;
  return model;
}

DeviceSpec H100() {
  const DeviceSpec* device = FindDevice("NVIDIA H100 80GB HBM3");
  EXPECT_NE(device, nullptr);
  return *device;
}

// The published constants of the component roofline.
TEST(Roofline, PublishedConstantsOfQwen3) {
  EXPECT_EQ(AttentionParameters(Qwen3Of4B()), 943718400);
  EXPECT_EQ(MlpParameters(Qwen3Of4B()), 2689597440);
  EXPECT_EQ(KvBytes(Qwen3Of4B()), 147456);
  EXPECT_EQ(MaxChunkTokens(Qwen3Of4B()), 110376);
  EXPECT_EQ(AttentionParameters(Qwen3Of32B()), 6039797760);
  EXPECT_EQ(MlpParameters(Qwen3Of32B()), 25165824000);
  EXPECT_EQ(KvBytes(Qwen3Of32B()), 262144);
  EXPECT_EQ(MaxChunkTokens(Qwen3Of32B()), 41943);
}

TEST(Roofline, PublishedRatesOfTheH100) {
  Workload token;
  token.tokens = 1;
  const RooflineParts parts = Roofline(token, Qwen3Of4B(), H100());
  EXPECT_NEAR(parts.total(), 3.672e-6, 0.001e-6);
  Workload pair;
  pair.attention_pairs = 1;
  EXPECT_NEAR(RooflineSeconds(pair, Qwen3Of4B(), H100()), 5.96e-10, 0.01e-10);
}

TEST(Roofline, APassIsBoundByReadingTheWeights) {
  Workload work;
  work.tokens = 1;
  work.passes = 1;
  const double bytes = AttentionParameters(Qwen3Of4B()) + MlpParameters(Qwen3Of4B());
  EXPECT_NEAR(RooflineSeconds(work, Qwen3Of4B(), H100()), bytes / 3.35e12, 1e-9);
  work.tokens = 500;  // past the knee of about 416 tokens
  EXPECT_GT(RooflineSeconds(work, Qwen3Of4B(), H100()), 1.1 * bytes / 3.35e12);
}

TEST(Roofline, KvTrafficBoundsAttention) {
  Workload work;
  work.kv_read = 1e6;
  work.kv_written = 1e6;
  EXPECT_NEAR(RooflineSeconds(work, Qwen3Of4B(), H100()), 2e6 * 147456 / 3.35e12, 1e-6);
}

TEST(Roofline, PredictionsAreNeverBelowTheSpeedOfLight) {
  Workload work{1000, 5e5, 1000, 500, 1};
  EXPECT_GT(PredictedSeconds(work, 10, Qwen3Of4B(), H100()),
            RooflineSeconds(work, Qwen3Of4B(), H100()) + 10 * 37e-6);
  const DeviceSpec* a100 = FindDevice("NVIDIA A100-SXM4-80GB");
  ASSERT_NE(a100, nullptr);
  EXPECT_EQ(PredictedSeconds(work, 10, Qwen3Of4B(), *a100),
            RooflineSeconds(work, Qwen3Of4B(), *a100));
}

TEST(DeviceSpec, EveryNumberHasASourceAndDenseRatesAreOrdered) {
  for (const DeviceSpec& device : KnownDevices()) {
    EXPECT_FALSE(device.source.empty()) << device.name;
    EXPECT_GT(device.memory_bytes, 20e9) << device.name;
    EXPECT_GT(device.bandwidth, 0.5e12) << device.name;
    EXPECT_GT(device.bf16_rate, device.f32_rate) << device.name;
    if (device.fp8_rate > 0) {
      EXPECT_NEAR(device.fp8_rate / device.bf16_rate, 2, 0.05) << device.name;
    }
    EXPECT_EQ(FindDevice("NVIDIA " + device.name), &device);
  }
  EXPECT_EQ(FindDevice("NVIDIA T4"), nullptr);
}

TEST(DeviceSpec, NarrowWeightsFallBackToUnitsThatExist) {
  const DeviceSpec* a100 = FindDevice("A100");
  ASSERT_NE(a100, nullptr);
  EXPECT_EQ(a100->GemmRate(WeightType::kFp8Block), a100->bf16_rate);
  DeviceSpec computer;
  computer.f32_rate = 1e11;
  EXPECT_EQ(computer.GemmRate(WeightType::kBf16), 1e11);
  EXPECT_EQ(computer.AttentionRate(WeightType::kBf16), 1e11);
  EXPECT_EQ(computer.AttentionRate(WeightType::kInt8), 1e11);
  computer.int8_rate = 4e11;
  EXPECT_EQ(computer.AttentionRate(WeightType::kInt8), 4e11) << "it may multiply bytes";
  EXPECT_EQ(computer.AttentionRate(WeightType::kBf16), 1e11);
}

}  // namespace
}  // namespace quail::spec
