#include "infer/models/dense_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "infer/counting/counting_backend.h"
#include "infer/weights/random_weights.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

/// Every tensor of a small Qwen3; its output head is what the test says.
class HeadWeights final : public WeightSource {
 public:
  enum class Head : std::uint8_t { kMissing, kEmbedding, kOwn };

  HeadWeights(const spec::ModelSpec& spec, Head head) : head_(head) {
    spec::ModelSpec untied = spec;
    untied.tied_head = false;
    weights_ = CreateRandomWeights(untied, 1);
  }
  std::shared_ptr<const WeightTensor> Find(std::string_view name) const override {
    if (name != "lm_head.weight") return weights_->Find(name);
    switch (head_) {
      case Head::kMissing:
        return nullptr;
      case Head::kEmbedding:
        return weights_->Find("model.embed_tokens.weight");
      case Head::kOwn:
        return weights_->Find(name);
    }
    return nullptr;
  }
  base::Hash128 hash() const override { return {}; }

 private:
  Head head_;
  std::shared_ptr<const WeightSource> weights_;
};

class DenseDecoderTest : public testing::Test {
 protected:
  DenseDecoderTest() {
    spec_.family = spec::ModelFamily::kQwen3;
    spec_.qk_norm = true;
    spec_.layers = 1;
    spec_.hidden = 8;
    spec_.heads = 2;
    spec_.kv_heads = 1;
    spec_.head_dim = 4;
    spec_.ffn = 12;
    spec_.vocabulary = 300;
    spec_.context = 64;
  }

  /// The error of loading, empty where there is none.
  std::string Load(bool tied, HeadWeights::Head head, std::vector<std::int32_t> answers = {1, 2}) {
    spec_.tied_head = tied;
    CountingBackend backend({});
    try {
      LoadModel({spec_, std::move(answers), false}, HeadWeights(spec_, head), backend);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      return error.what();
    }
    return "";
  }

  spec::ModelSpec spec_;
};

TEST_F(DenseDecoderTest, Case67TheHeadFollowsTheConfiguration) {
  using enum HeadWeights::Head;
  EXPECT_EQ(Load(true, kMissing), "");
  EXPECT_EQ(Load(true, kEmbedding), "");
  EXPECT_NE(Load(true, kOwn).find("rows 0 to 255"), std::string::npos) << "tied, but another head";
  EXPECT_EQ(Load(false, kOwn), "");
  EXPECT_EQ(Load(false, kEmbedding), "");
  EXPECT_NE(Load(false, kMissing).find("lm_head.weight"), std::string::npos);
}

/// Llama 3.1's scaling as GGUF files have it: a divisor for each frequency.
class ScaledWeights final : public WeightSource {
 public:
  explicit ScaledWeights(std::vector<float> divisors)
      : tensor_(std::make_shared<Divisors>(std::move(divisors))) {}
  std::shared_ptr<const WeightTensor> Find(std::string_view name) const override {
    return name == "rope_freqs.weight" ? tensor_ : nullptr;
  }
  base::Hash128 hash() const override { return {}; }

 private:
  class Divisors final : public WeightTensor {
   public:
    explicit Divisors(std::vector<float> values) : values_(std::move(values)) {}
    const std::string& name() const override { return name_; }
    std::int64_t rows() const override { return 1; }
    std::int64_t columns() const override { return static_cast<std::int64_t>(values_.size()); }
    void ReadRows(std::int64_t, std::int64_t, float* out) const override {
      std::copy(values_.begin(), values_.end(), out);
    }

   private:
    std::string name_ = "rope_freqs.weight";
    std::vector<float> values_;
  };
  std::shared_ptr<const WeightTensor> tensor_;
};

TEST_F(DenseDecoderTest, FrequenciesAreDividedAsTheFileSays) {
  spec_.rope_theta = 10000.0;
  EXPECT_EQ(RotaryFrequencies(spec_, ScaledWeights({1.0F, 8.0F})),
            (std::vector<float>{1.0F, 0.01F / 8}));
  EXPECT_THROW(RotaryFrequencies(spec_, ScaledWeights({1.0F})), Error) << "heads of 4 have two";
}

TEST_F(DenseDecoderTest, Case31AnAnswerBeyondTheVocabularyIsRefused) {
  using enum HeadWeights::Head;
  const std::string error = Load(false, kOwn, {5, 300});
  EXPECT_NE(error.find("300"), std::string::npos) << error;
  EXPECT_EQ(Load(false, kOwn, {5, 299}), "");
  EXPECT_NE(Load(false, kOwn, {-1}), "");
}

}  // namespace
}  // namespace quail::infer
