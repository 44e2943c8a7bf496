#include "infer/weights/gguf_weights.h"

#include <gtest/gtest.h>

#include "gguf_writer.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

class GgufWeightsTest : public testing::Test {
 protected:
  GgufWeightsTest()
      : bytes_(spec::TinyLlama().Finish()),
        file_(spec::GgufFile::Parse("file.gguf", bytes_)),
        spec_(spec::ReadModelSpec(*file_)) {}

  std::vector<float> FirstColumn(const WeightSource& weights, std::string_view name) {
    const auto tensor = weights.Find(name);
    std::vector<float> values(static_cast<std::size_t>(tensor->rows() * tensor->columns()));
    tensor->ReadRows(0, tensor->rows(), values.data());
    std::vector<float> column;
    for (std::int64_t row = 0; row < tensor->rows(); ++row) {
      column.push_back(values[static_cast<std::size_t>(row * tensor->columns())]);
    }
    return column;
  }

  std::vector<std::byte> bytes_;
  std::shared_ptr<const spec::GgufFile> file_;
  spec::ModelSpec spec_;
};

// The writer's row r begins with value 8 r. Heads of 4: file order 0 2 | 1 3 for halves (0, 1), (2,
// 3).
TEST_F(GgufWeightsTest, RowsOfQAndKOfLlamaComeInModelOrder) {
  const auto weights = OpenGgufWeights(file_, spec_);
  EXPECT_EQ(FirstColumn(*weights, "model.layers.0.self_attn.q_proj.weight"),
            (std::vector<float>{0, 16, 8, 24, 32, 48, 40, 56}));
  EXPECT_EQ(FirstColumn(*weights, "model.layers.0.self_attn.k_proj.weight"),
            (std::vector<float>{0, 16, 8, 24}));
  EXPECT_EQ(FirstColumn(*weights, "model.layers.0.self_attn.v_proj.weight"),
            (std::vector<float>{0, 8, 16, 24}));
}

TEST_F(GgufWeightsTest, OtherFamiliesKeepTheirOrder) {
  spec_.family = spec::ModelFamily::kQwen2;
  EXPECT_EQ(FirstColumn(*OpenGgufWeights(file_, spec_), "model.layers.0.self_attn.k_proj.weight"),
            (std::vector<float>{0, 8, 16, 24}));
}

TEST_F(GgufWeightsTest, AMissingOrMisshapenTensorIsNamed) {
  const auto weights = OpenGgufWeights(file_, spec_);
  EXPECT_EQ(weights->Find("lm_head.weight"), nullptr);
  EXPECT_NE(FindWeight(*weights, "model.norm.weight", 1, 8), nullptr);
  for (const char* name : {"model.norm.weight", "model.layers.0.mlp.up_proj.weight"}) {
    try {
      FindWeight(*weights, name, 1, 9);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("[1, 9]"), std::string::npos);
    }
  }
}

TEST_F(GgufWeightsTest, NamesOfEveryKind) {
  EXPECT_EQ(GgufName("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(GgufName("lm_head.weight"), "output.weight");
  EXPECT_EQ(GgufName("model.layers.12.post_attention_layernorm.weight"), "blk.12.ffn_norm.weight");
  EXPECT_EQ(GgufName("model.layers.0.self_attn.q_proj.bias"), "blk.0.attn_q.bias");
  EXPECT_EQ(GgufName("rope_freqs.weight"), "rope_freqs.weight");
  EXPECT_EQ(GgufName("model.layers."), "model.layers.");
}

TEST_F(GgufWeightsTest, Case49TheHashFollowsTheContent) {
  std::vector<std::byte> other = bytes_;
  other.back() ^= std::byte{1};
  const auto changed = spec::GgufFile::Parse("file.gguf", other);
  EXPECT_EQ(OpenGgufWeights(file_, spec_)->hash(), OpenGgufWeights(file_, spec_)->hash());
  EXPECT_NE(OpenGgufWeights(file_, spec_)->hash(), OpenGgufWeights(changed, spec_)->hash());
}

}  // namespace
}  // namespace quail::infer
