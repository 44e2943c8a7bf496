#include "spec/model_spec.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "gguf_writer.h"
#include "quail/error.h"
#include "spec/gguf_file.h"
#include "test_paths.h"

namespace quail::spec {
namespace {

constexpr const char* kQwen3 = R"({"model_type": "qwen3", "num_hidden_layers": 36,
  "hidden_size": 2560, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "intermediate_size": 9728, "vocab_size": 151936, "max_position_embeddings": 40960,
  "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": true, "hidden_act": "silu",
  "attention_bias": false, "rope_scaling": null, "use_sliding_window": false,
  "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

ErrorCode CodeOf(const std::string& config) {
  try {
    ReadModelSpec(config, "config.json");
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error: " << config;
  return ErrorCode::kUsage;
}

TEST(ModelSpec, OfQwen3Config) {
  const ModelSpec spec = ReadModelSpec(kQwen3, "config.json");
  EXPECT_EQ(spec.family, ModelFamily::kQwen3);
  EXPECT_EQ(spec.layers, 36);
  EXPECT_EQ(spec.q_width(), 4096);
  EXPECT_EQ(spec.kv_width(), 1024);
  EXPECT_EQ(spec.vocabulary, 151936);
  EXPECT_EQ(spec.rope_theta, 1e6);
  EXPECT_TRUE(spec.qk_norm && spec.tied_head && !spec.qkv_bias);
  EXPECT_EQ(spec.weight_type, WeightType::kFp8Block);
}

TEST(ModelSpec, HeadSizeAndKeyHeadsHaveDefaults) {
  std::string config = Replaced(kQwen3, R"("head_dim": 128,)", "");
  config = Replaced(config, R"("num_key_value_heads": 8,)", "");
  const ModelSpec spec = ReadModelSpec(config, "config.json");
  EXPECT_EQ(spec.head_dim, 80);
  EXPECT_EQ(spec.kv_heads, 32);
}

TEST(ModelSpec, Llama3ScalingOldAndNewSpelling) {
  const std::string scaling =
      R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192, "rope_theta": 500000.0})";
  const std::string llama = Replaced(kQwen3, "qwen3", "llama");
  const ModelSpec old_spelling = ReadModelSpec(
      Replaced(llama, R"("rope_scaling": null)", R"("rope_scaling": )" + scaling), "config.json");
  EXPECT_EQ(old_spelling.rope_scaling.factor, 32.0);
  EXPECT_EQ(old_spelling.rope_scaling.original_context, 8192);
  std::string config =
      Replaced(llama, R"("rope_scaling": null)", R"("rope_parameters": )" + scaling);
  config = Replaced(config, R"("rope_theta": 1000000,)", "");
  const ModelSpec new_spelling = ReadModelSpec(config, "config.json");
  EXPECT_EQ(new_spelling.rope_scaling.factor, 32.0);
  EXPECT_EQ(new_spelling.rope_theta, 500000.0);
}

TEST(ModelSpec, WhatIsNotSupportedIsSaid) {
  EXPECT_EQ(CodeOf(Replaced(kQwen3, "qwen3", "mamba")), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(Replaced(kQwen3, "silu", "gelu")), ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(Replaced(kQwen3, R"("rope_scaling": null)",
                            R"("rope_scaling": {"type": "yarn", "factor": 4.0})")),
            ErrorCode::kUnsupported);
  EXPECT_EQ(
      CodeOf(Replaced(kQwen3, R"("use_sliding_window": false)", R"("use_sliding_window": true)")),
      ErrorCode::kUnsupported);
  EXPECT_EQ(CodeOf(Replaced(kQwen3, R"("quant_method": "fp8")", R"("quant_method": "gptq")")),
            ErrorCode::kUnsupported);
}

TEST(ModelSpec, BrokenConfigsAreRefused) {
  EXPECT_EQ(CodeOf("{"), ErrorCode::kCorrupt);
  EXPECT_EQ(CodeOf("[]"), ErrorCode::kCorrupt);
  for (const char* value : {"0", "-3", "1.5", "\"36\"", "1e99", "99999999999"}) {
    EXPECT_EQ(CodeOf(Replaced(kQwen3, "\"num_hidden_layers\": 36",
                              std::string("\"num_hidden_layers\": ") + value)),
              ErrorCode::kModel)
        << value;
  }
  EXPECT_EQ(CodeOf(Replaced(kQwen3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7")),
            ErrorCode::kModel);
  EXPECT_EQ(CodeOf(Replaced(kQwen3, "\"hidden_size\": 2560,", "")), ErrorCode::kModel);
}

TEST(ModelSpec, OfAGgufFile) {
  const auto bytes = TinyLlama().Finish();
  const ModelSpec spec = ReadModelSpec(*GgufFile::Parse("file.gguf", bytes));
  EXPECT_EQ(spec.name, "tiny");
  EXPECT_EQ(spec.head_dim, 4);
  EXPECT_EQ(spec.kv_heads, 1);
  EXPECT_EQ(spec.vocabulary, 32);
  EXPECT_FLOAT_EQ(static_cast<float>(spec.norm_epsilon), 1e-6F);
  EXPECT_TRUE(spec.tied_head);
}

TEST(ModelSpec, AGgufFileWithItsOwnHeadIsNotTied) {
  GgufWriter writer = TinyLlama();
  writer.AddF32("output.weight", {8, 32}, std::vector<float>(256));
  const auto bytes = writer.Finish();
  EXPECT_FALSE(ReadModelSpec(*GgufFile::Parse("file.gguf", bytes)).tied_head);
}

TEST(ModelSpec, PartialRotationIsNotSupported) {
  GgufWriter writer = TinyLlama();
  writer.Uint32("llama.rope.dimension_count", 2);
  const auto bytes = writer.Finish();
  EXPECT_THROW(ReadModelSpec(*GgufFile::Parse("file.gguf", bytes)), Error);
}

TEST(ModelSpec, OfTheEmbeddedModel) {
  const std::filesystem::path path =
      std::filesystem::path(QUAIL_DEPS_DIR) / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no embedded model";
  const ModelSpec spec = ReadModelSpec(*GgufFile::Open(path));
  EXPECT_EQ(spec.layers, 30);
  EXPECT_EQ(spec.hidden, 576);
  EXPECT_EQ(spec.heads, 9);
  EXPECT_EQ(spec.kv_heads, 3);
  EXPECT_EQ(spec.head_dim, 64);
  EXPECT_EQ(spec.ffn, 1536);
  EXPECT_EQ(spec.vocabulary, 49152);
  EXPECT_EQ(spec.context, 8192);
  EXPECT_EQ(spec.rope_theta, 100000.0);
  EXPECT_TRUE(spec.tied_head);
}

TEST(ModelSpec, ALayerOfFloatsIsFoundAmongQuantisedOnes) {
  const auto found = [](const GgufWriter& writer) {
    const auto bytes = writer.Finish();
    return FindUnquantisedLayer(*GgufFile::Parse("tiny.gguf", bytes));
  };
  GgufWriter writer;
  const auto q8_0 = static_cast<std::uint32_t>(GgufType::kQ8_0);
  writer.Add({"blk.0.attn_q.weight", {32, 2}, q8_0, std::vector<std::byte>(68)});
  writer.AddF32("blk.0.attn_norm.weight", {2}, {1, 1});
  writer.AddF32("token_embd.weight", {2, 2}, {1, 1, 1, 1});
  EXPECT_EQ(found(writer), std::nullopt);
  writer.AddF32("blk.0.ffn_up.weight", {2, 2}, {1, 1, 1, 1});
  EXPECT_EQ(found(writer), "blk.0.ffn_up.weight");
}

}  // namespace
}  // namespace quail::spec
