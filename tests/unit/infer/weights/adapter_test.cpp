#include "infer/weights/adapter.h"

#include <gtest/gtest.h>

#include "base/hash128.h"
#include "gguf_writer.h"
#include "infer/weights/gguf_weights.h"
#include "quail/error.h"
#include "safetensors_writer.h"

namespace quail::infer {
namespace {

/// Rank 2, alpha 6 for Q [8, 8] of the tiny llama. Row r of B is (r, 1).
SafetensorsWriter TinyAdapter() {
  SafetensorsWriter writer;
  std::vector<float> a(16), b(16);
  for (std::size_t i = 0; i < 8; ++i) {
    a[i] = 1.0F;
    a[8 + i] = static_cast<float>(i);
    b[2 * i] = static_cast<float>(i);
    b[2 * i + 1] = 1.0F;
  }
  writer.AddF32("blk.0.attn_q.lora_a", {2, 8}, a);
  writer.AddF32("blk.0.attn_q.lora_b", {8, 2}, b);
  writer.head()["__metadata__"] = {
      {"format", "quail-lora-1"},
      {"rank", "2"},
      {"alpha", "6"},
      {"margin_scale", "0.5"},
      {"base_model", "tiny"},
      {"words", "T,F"},
      {"layout", "plain"},
      {"row_order", "gguf"},
      {"base_hash", base::HashBytes(spec::TinyLlama().Finish()).ToHex()}};
  return writer;
}

class AdapterTest : public testing::Test {
 protected:
  AdapterTest()
      : gguf_bytes_(spec::TinyLlama().Finish()),
        file_(spec::GgufFile::Parse("file.gguf", gguf_bytes_)),
        spec_(spec::ReadModelSpec(*file_)),
        base_(OpenGgufWeights(file_, spec_)) {}

  std::shared_ptr<const WeightSource> Apply(const SafetensorsWriter& writer) {
    adapter_bytes_ = writer.Finish();
    const auto parsed = SafetensorsFile::Parse("adapter.safetensors", adapter_bytes_);
    return ApplyAdapter(base_, std::make_shared<Adapter>(parsed), spec_);
  }
  std::string ErrorOf(const SafetensorsWriter& writer) {
    try {
      Apply(writer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
  static std::vector<float> Rows(const WeightSource& weights, std::string_view name) {
    const auto tensor = weights.Find(name);
    std::vector<float> values(static_cast<std::size_t>(tensor->rows() * tensor->columns()));
    tensor->ReadRows(0, tensor->rows(), values.data());
    return values;
  }

  std::vector<std::byte> gguf_bytes_;
  std::vector<std::byte> adapter_bytes_;
  std::shared_ptr<const spec::GgufFile> file_;
  spec::ModelSpec spec_;
  std::shared_ptr<const WeightSource> base_;
};

TEST_F(AdapterTest, MergesInTheRowOrderOfTheFile) {
  const auto merged = Apply(TinyAdapter());
  const std::vector<float> plain = Rows(*base_, "model.layers.0.self_attn.q_proj.weight");
  const std::vector<float> values = Rows(*merged, "model.layers.0.self_attn.q_proj.weight");
  const std::vector<int> stored = {0, 2, 1, 3, 4, 6, 5, 7};
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      const float added = 3.0F * static_cast<float>(stored[row] + static_cast<int>(column));
      EXPECT_EQ(values[row * 8 + column], plain[row * 8 + column] + added) << row << " " << column;
    }
  }
  EXPECT_EQ(Rows(*merged, "model.layers.0.self_attn.v_proj.weight"),
            Rows(*base_, "model.layers.0.self_attn.v_proj.weight"));
}

TEST_F(AdapterTest, InModelRowOrderRowsStay) {
  SafetensorsWriter writer = TinyAdapter();
  writer.head()["__metadata__"]["row_order"] = "hf";
  const std::vector<float> plain = Rows(*base_, "model.layers.0.self_attn.q_proj.weight");
  const std::vector<float> values = Rows(*Apply(writer), "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(values[8], plain[8] + 3.0F);
}

TEST_F(AdapterTest, Case49AnAdapterChangesTheHash) {
  const auto merged = Apply(TinyAdapter());
  EXPECT_NE(merged->hash(), base_->hash());
}

TEST_F(AdapterTest, WhatDoesNotFitIsRefused) {
  SafetensorsWriter rank = TinyAdapter();
  rank.head()["__metadata__"]["rank"] = "3";
  EXPECT_NE(ErrorOf(rank).find("at rank 3"), std::string::npos);
  SafetensorsWriter format = TinyAdapter();
  format.head()["__metadata__"]["format"] = "other";
  EXPECT_NE(ErrorOf(format).find("quail-lora-1"), std::string::npos);
  SafetensorsWriter base = TinyAdapter();
  base.head()["__metadata__"]["base_hash"] = base::HashBytes("another model").ToHex();
  EXPECT_NE(ErrorOf(base).find("trained for the weights of tiny"), std::string::npos);
  SafetensorsWriter alone = TinyAdapter();
  alone.AddF32("blk.0.attn_v.lora_a", {2, 8}, std::vector<float>(16));
  EXPECT_NE(ErrorOf(alone).find("pair"), std::string::npos);
  SafetensorsWriter stranger = TinyAdapter();
  stranger.AddF32("blk.7.attn_q.lora_a", {2, 8}, std::vector<float>(16));
  stranger.AddF32("blk.7.attn_q.lora_b", {8, 2}, std::vector<float>(16));
  EXPECT_NE(ErrorOf(stranger).find("belong to no layer"), std::string::npos);
  SafetensorsWriter shape = TinyAdapter();
  shape.AddF32("blk.0.attn_v.lora_a", {2, 9}, std::vector<float>(18));
  shape.AddF32("blk.0.attn_v.lora_b", {4, 2}, std::vector<float>(8));
  EXPECT_NE(ErrorOf(shape).find("[4, 9]"), std::string::npos);
}

}  // namespace
}  // namespace quail::infer
