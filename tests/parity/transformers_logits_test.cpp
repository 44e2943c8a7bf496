#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "model_fixture.h"
#include "test_paths.h"

// Whole models beside Hugging Face transformers, which knows nothing of ours: the made-up weights
// of tools/random_weights.py, the logits in tests/data/transformers_logits.json.
namespace quail::parity {
namespace {

using infer::cpu::ElementType;

spec::ModelSpec SpecOf(const std::string& name) {
  if (name == "qwen2") return TinySpec(spec::ModelFamily::kQwen2);
  if (name == "qwen3") return TinySpec(spec::ModelFamily::kQwen3);
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kLlama);
  if (name == "llama_scaled") {
    spec.rope_theta = 500000.0;
    spec.rope_scaling = {8.0, 1.0, 4.0, 64};
  }
  return spec;
}

class TransformersLogits : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(QUAIL_SOURCE_DIR "/tests/data/transformers_logits.json");
    golden_ = nlohmann::json::parse(file);
    ASSERT_EQ(golden_["first_answer"], LoadedModel::kFirstAnswer);
  }

  void Compare(ElementType type) {
    const spec::ModelSpec spec = SpecOf(GetParam());
    const auto weights = infer::CreateRandomWeights(spec, golden_["seed"].get<std::uint64_t>());
    LoadedModel loaded(spec, *weights, {2, type, {}});
    const nlohmann::json& sequences = golden_["models"][GetParam()];
    ASSERT_GE(sequences.size(), 5U);
    for (const auto& sequence : sequences) {
      const auto length = sequence["length"].get<std::size_t>();
      const auto wanted = sequence["logits"].get<std::vector<double>>();
      ASSERT_EQ(wanted.size(), LoadedModel::kAnswers);
      const auto got = loaded.Alone(MakeTokens(length, static_cast<std::uint32_t>(length)));
      const ErrorShare error = MeasureError<float>(got, wanted);
      EXPECT_LE(error.largest, ToleranceOf(type).largest) << length;
      EXPECT_LE(error.rms, ToleranceOf(type).rms) << length;
    }
  }

  nlohmann::json golden_;
};

TEST_P(TransformersLogits, F32) { Compare(ElementType::kF32); }

TEST_P(TransformersLogits, Bf16) {
  if (infer::cpu::SupportedBf16Units().empty()) GTEST_SKIP() << "skipped: no bf16 products here";
  Compare(ElementType::kBf16);
}

INSTANTIATE_TEST_SUITE_P(Families, TransformersLogits,
                         testing::Values("llama", "llama_scaled", "qwen2", "qwen3"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace quail::parity
