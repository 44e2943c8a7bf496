#include "infer/cuda/device_support.h"

#include <gtest/gtest.h>

#include "quail/error.h"
#include "spec/known_shapes.h"

namespace quail::infer::cuda {
namespace {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

/// A computer that can run everything.
DeviceFacts Hopper() {
  return {.driver_version = 13000,
          .runtime_version = 13000,
          .devices = 2,
          .device = 1,
          .name = "NVIDIA H200",
          .major = 9,
          .minor = 0};
}

TEST(DeviceSupport, AHopperWithARecentDriverIsUsable) {
  EXPECT_EQ(WhyUnusable(Hopper()), std::nullopt);
  DeviceFacts newer = Hopper();
  newer.driver_version = 13010;
  EXPECT_EQ(WhyUnusable(newer), std::nullopt);
}

TEST(DeviceSupport, ARefusalNamesTheNumbers) {
  DeviceFacts none = Hopper();
  none.driver_version = none.devices = 0;
  EXPECT_EQ(WhyUnusable(none), "no NVIDIA driver is installed");
  DeviceFacts old = Hopper();
  old.driver_version = 12080;
  old.devices = 0;
  EXPECT_EQ(WhyUnusable(old), "the NVIDIA driver supports CUDA 12.8; this program needs 13.0");
  DeviceFacts missing = Hopper();
  missing.device = 2;
  EXPECT_EQ(WhyUnusable(missing), "no GPU 2: this computer has 2");
  DeviceFacts ampere = Hopper();
  ampere.name = "NVIDIA A100";
  ampere.major = 8;
  EXPECT_EQ(WhyUnusable(ampere),
            "NVIDIA A100 has compute capability 8.0; the CUDA backend is built for 9.0 (Hopper)");
  DeviceFacts newer = Hopper();
  newer.major = 10;
  EXPECT_NE(WhyUnusable(newer), std::nullopt);
}

std::string Refusal(const spec::ModelSpec& spec, std::int64_t free_bytes) {
  try {
    CheckFits(spec, 32768, free_bytes, "NVIDIA X");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    return error.what();
  }
  return "";
}

TEST(DeviceSupport, ACardThatIsTooSmallIsRefusedWithTheSizes) {
  const spec::ModelSpec spec = spec::FindShape("qwen3-4b-fp8")->spec;
  EXPECT_EQ(Refusal(spec, 8 * kGib), "");
  // 3.63 G parameters of a byte and an embedding of 389 M in two; 99,200 bytes a token.
  EXPECT_EQ(Refusal(spec, 6 * kGib),
            "qwen3-4b-fp8 needs 7.14 GiB of device memory beside its keys and values (4.11 for "
            "weights, 3.03 for the activations of 32768 tokens); NVIDIA X has 6.00 GiB free");
}

TEST(DeviceSupport, Bf16TakesTwiceTheWeights) {
  spec::ModelSpec spec = spec::FindShape("qwen3-4b-fp8")->spec;
  spec.weight_type = spec::WeightType::kBf16;
  EXPECT_NE(Refusal(spec, 8 * kGib).find("7.49 for weights"), std::string::npos)
      << Refusal(spec, 8 * kGib);
}

// The shapes of Activations at C 2560, H D 4096, K D 1024, F 9728.
TEST(DeviceSupport, ActivationsOfAToken) {
  spec::ModelSpec spec = spec::FindShape("qwen3-4b-fp8")->spec;
  const ActivationBytes fp8 = ActivationBytesPerRow(spec);
  EXPECT_EQ(fp8.residual, 2 * 2560);
  EXPECT_EQ(fp8.kept_residual, 2 * 2560);
  EXPECT_EQ(fp8.normed, 2560);
  EXPECT_EQ(fp8.kept_normed, 2 * 2560);
  EXPECT_EQ(fp8.kept_fp8, 2560);
  EXPECT_EQ(fp8.heads, 2 * (4096 + 2 * 1024));
  EXPECT_EQ(fp8.kept_queries, 2 * 4096);
  EXPECT_EQ(fp8.attention, 4096);
  EXPECT_EQ(fp8.delta, 2 * 2560);
  EXPECT_EQ(fp8.gate_up, 2 * 2 * 9728);
  EXPECT_EQ(fp8.inner, 9728);
  EXPECT_EQ(fp8.scales, 4 * 9728 / 128);
  EXPECT_EQ(fp8.kept_scales, 4 * 2560 / 128);
  EXPECT_EQ(fp8.total(), 99'200);
  spec.weight_type = spec::WeightType::kBf16;
  const ActivationBytes bf16 = ActivationBytesPerRow(spec);
  EXPECT_EQ(bf16.normed, 2 * 2560);
  EXPECT_EQ(bf16.attention, 2 * 4096);
  EXPECT_EQ(bf16.inner, 2 * 9728);
  EXPECT_EQ(bf16.kept_fp8 + bf16.scales + bf16.kept_scales, 0);
}

}  // namespace
}  // namespace quail::infer::cuda
