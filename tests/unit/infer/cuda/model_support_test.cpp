#include "infer/cuda/model_support.h"

#include <gtest/gtest.h>

#include "infer/cuda/attention_select.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

spec::ModelSpec Spec(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim) {
  spec::ModelSpec spec;
  spec.layers = 2;
  spec.hidden = 256;
  spec.heads = heads;
  spec.kv_heads = kv_heads;
  spec.head_dim = head_dim;
  spec.ffn = 512;
  return spec;
}

std::string Refusal(const spec::ModelSpec& spec) {
  try {
    CheckSupported(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    return error.what();
  }
  return "";
}

TEST(AttentionSelect, PublicShapesHaveAKernel) {
  EXPECT_EQ(SelectAttention(64, 3), AttentionKernel::kMma);     // SmolLM2-135M
  EXPECT_EQ(SelectAttention(64, 7), AttentionKernel::kMma);     // Qwen2-0.5B
  EXPECT_EQ(SelectAttention(128, 4), AttentionKernel::kWgmma);  // Qwen3-4B
  EXPECT_EQ(SelectAttention(128, 8), AttentionKernel::kWgmma);  // Qwen3-32B
  EXPECT_EQ(SelectAttention(128, 3), std::nullopt);
  EXPECT_EQ(SelectAttention(80, 4), std::nullopt);
}

TEST(AttentionSelect, ATileIsNeverWiderThanItsRows) {
  for (const std::int32_t group : {1, 2, 3, 4, 5, 7, 8}) {
    EXPECT_LE(AttentionTileTokens(group) * group, kAttentionTileRows);
    EXPECT_GT((AttentionTileTokens(group) + 1) * group, kAttentionTileRows);
  }
}

TEST(ModelSupport, TakesWhatHasKernels) {
  EXPECT_EQ(Refusal(Spec(9, 3, 64)), "");
  spec::ModelSpec fp8 = Spec(8, 2, 128);
  fp8.weight_type = spec::WeightType::kFp8Block;
  EXPECT_EQ(Refusal(fp8), "");
}

TEST(ModelSupport, ARefusalNamesTheNumbers) {
  EXPECT_NE(Refusal(Spec(8, 2, 80)).find("8 query and 2 KV heads of size 80"), std::string::npos);
  EXPECT_NE(Refusal(Spec(8, 3, 64)), "");
  EXPECT_NE(Refusal(Spec(8, 0, 64)), "");
  spec::ModelSpec odd = Spec(8, 2, 128);
  odd.ffn = 516;
  EXPECT_NE(Refusal(odd).find("multiples of 8; this model has 516"), std::string::npos);
  odd.ffn = 520;
  EXPECT_EQ(Refusal(odd), "");
  odd.weight_type = spec::WeightType::kFp8Block;
  EXPECT_NE(Refusal(odd).find("multiples of 128; this model has 520"), std::string::npos);
  spec::ModelSpec small_heads = Spec(8, 4, 64);
  small_heads.weight_type = spec::WeightType::kFp8Block;
  EXPECT_NE(Refusal(small_heads).find("128"), std::string::npos);
}

}  // namespace
}  // namespace quail::infer::cuda
