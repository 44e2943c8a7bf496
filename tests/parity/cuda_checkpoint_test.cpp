#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "cuda_tolerance.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/prompt_forest.h"
#include "infer/weights/safetensors_weights.h"
#include "model_fixture.h"

namespace quail::parity {
namespace {

using infer::KeySpan;
using Tokens = std::vector<std::int32_t>;

/// Checkpoints and transformers' logits for them: the folders below $QUAIL_CHECKPOINTS, as
/// tools/dump_qwen3_checkpoints.py writes them.
class CudaCheckpoint : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* root = std::getenv("QUAIL_CHECKPOINTS");
    if (root == nullptr) GTEST_SKIP() << "skipped: no QUAIL_CHECKPOINTS";
    folder_ = std::filesystem::path(root) / GetParam();
    const auto config = base::MappedFile::Open(folder_ / "config.json");
    spec_ = spec::ReadModelSpec(
        {reinterpret_cast<const char*>(config.bytes().data()), config.bytes().size()},
        "config.json");
    weights_ = infer::OpenSafetensorsWeights(folder_);
    std::ifstream stream(folder_ / "logits.json");
    golden_ = nlohmann::json::parse(stream);
    ASSERT_EQ(golden_["answers"][0], LoadedModel::kFirstAnswer);
    ASSERT_EQ(golden_["answers"].size(), LoadedModel::kAnswers);
    loaded_ = std::make_unique<LoadedModel>(
        spec_, *weights_,
        infer::cuda::CreateCudaBackend({.max_chunk_tokens = 4096, .poison_activations = true}));
  }

  Tolerance tolerance() const {
    return spec_.weight_type == spec::WeightType::kFp8Block ? kModelFp8ExactActivations
                                                            : kModelBf16;
  }
  std::size_t sequences() const { return golden_["sequences"].size(); }
  Tokens tokens(std::size_t i) const { return golden_["sequences"][i]["tokens"].get<Tokens>(); }
  std::vector<double> logits(std::size_t i) const {
    return golden_["sequences"][i]["logits"].get<std::vector<double>>();
  }

  void ExpectLogits(const std::vector<float>& got, std::size_t i) {
    const ErrorShare error = MeasureError<float>(got, logits(i));
    EXPECT_LE(error.largest, tolerance().largest) << "sequence " << i;
    EXPECT_LE(error.rms, tolerance().rms) << "sequence " << i;
    RecordProperty("rms_" + std::to_string(i), std::to_string(error.rms));
  }

  std::filesystem::path folder_;
  spec::ModelSpec spec_;
  std::shared_ptr<const infer::WeightSource> weights_;
  nlohmann::json golden_;
  std::unique_ptr<LoadedModel> loaded_;
};

TEST_P(CudaCheckpoint, FreshPathsPackedTogether) {
  BatchBuilder builder;
  for (std::size_t i = 0; i < sequences(); ++i) builder.Add(tokens(i), {}, {});
  const LoadedModel::Result result = loaded_->Run(builder.batch());
  for (std::size_t i = 0; i < sequences(); ++i) ExpectLogits(result.row(i), i);
}

TEST_P(CudaCheckpoint, CachedAndSplitPaths) {
  for (std::size_t i = 0; i < sequences(); ++i) {
    const Tokens all = tokens(i);
    if (all.size() < 10) continue;
    // The first half in the arena, a quarter as a parent in the chunk, the rest below it.
    const auto half = static_cast<std::int32_t>(all.size() / 2);
    const auto quarter = static_cast<std::int32_t>(all.size() / 4);
    const std::span<const std::int32_t> path(all);
    BatchBuilder first;
    first.Add(path.first(static_cast<std::size_t>(half)), {}, {.first_slot = 11, .answer = false});
    loaded_->Run(first.batch());
    const KeySpan kept{11, half, KeySpan::Place::kArena};
    BatchBuilder second;
    const std::int32_t parent =
        second.Add(path.subspan(static_cast<std::size_t>(half), static_cast<std::size_t>(quarter)),
                   {kept}, {.first_position = half, .answer = false});
    second.Add(path.subspan(static_cast<std::size_t>(half + quarter)),
               {kept, {parent, quarter, KeySpan::Place::kChunk}},
               {.first_position = half + quarter});
    ExpectLogits(loaded_->Run(second.batch()).row(0), i);
  }
}

class OneLeaf final : public infer::ChildSource {
 public:
  explicit OneLeaf(std::vector<infer::TokenId> tokens) : tokens_(std::move(tokens)) {}
  std::uint64_t upper_bound() const override { return given_ ? 0 : 1; }
  void Next(std::size_t, std::vector<infer::Leaf>& leaves) override {
    if (!given_) leaves.push_back({0, tokens_});
    given_ = true;
  }

 private:
  std::vector<infer::TokenId> tokens_;
  bool given_ = false;
};

// Through the forest with room for two chunks only: longer paths are computed over several of them,
// and what was computed is evicted and computed again.
TEST_P(CudaCheckpoint, MarginsThroughAForestThatEvicts) {
  infer::ForestConfig config;
  config.chunk_tokens = 192;
  config.kv_tokens = 384;
  config.context_tokens = 4096;
  config.true_rows = 8;
  config.answer_rows = LoadedModel::kAnswers;
  const auto forest = infer::PromptForest::Create(loaded_->model(), loaded_->backend(), config);
  std::vector<std::vector<infer::TokenId>> documents;
  std::map<infer::SourceId, std::size_t> sequence_of;
  for (std::size_t i = 0; i < sequences(); ++i) {
    documents.emplace_back();
    for (const std::int32_t token : tokens(i)) documents.back().emplace_back(token);
  }
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const std::span<const infer::TokenId> path(documents[i]);
      const std::size_t head = path.size() / 2;
      const auto node = forest->Child(forest->root(), forest->Segment(path.first(head)));
      const auto tail = path.subspan(head);
      sequence_of[forest->Add(
          node, std::make_unique<OneLeaf>(std::vector<infer::TokenId>(tail.begin(), tail.end())),
          {})] = i;
    }
    std::vector<infer::Answer> answers;
    while (forest->Next(answers, nullptr)) {
    }
    ASSERT_EQ(answers.size(), documents.size());
    for (const infer::Answer& answer : answers) {
      const std::size_t i = sequence_of.at(answer.source);
      const auto wanted = logits(i);
      const double margin = *std::max_element(wanted.begin(), wanted.begin() + 8) -
                            *std::max_element(wanted.begin() + 8, wanted.end());
      double squares = 0;
      for (const double value : wanted) squares += value * value;
      const double deviation = std::sqrt(squares / static_cast<double>(wanted.size()));
      EXPECT_NEAR(static_cast<double>(answer.value), margin, 2 * tolerance().largest * deviation)
          << "sequence " << i << " round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen3, CudaCheckpoint,
                         testing::Values("tiny_bf16", "tiny_fp8", "layers_4b_fp8"));

}  // namespace
}  // namespace quail::parity
