#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "infer/cpu/bf16_kernels.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/model.h"
#include "infer/weights/adapter.h"
#include "infer/weights/block_formats.h"
#include "infer/weights/gguf_weights.h"
#include "session/model_host.h"
#include "test_paths.h"
#include "text/prompt.h"

namespace quail {
namespace {

using infer::cpu::ElementType;

/// A source's weights as bf16 holds them, for processors without bf16 products.
class RoundedWeights final : public infer::WeightSource {
 public:
  explicit RoundedWeights(std::shared_ptr<const infer::WeightSource> base)
      : base_(std::move(base)) {}

  std::shared_ptr<const infer::WeightTensor> Find(std::string_view hf_name) const override {
    auto tensor = base_->Find(hf_name);
    return tensor ? std::make_shared<Tensor>(std::move(tensor)) : nullptr;
  }
  base::Hash128 hash() const override { return base_->hash(); }

 private:
  class Tensor final : public infer::WeightTensor {
   public:
    explicit Tensor(std::shared_ptr<const infer::WeightTensor> base) : base_(std::move(base)) {}
    const std::string& name() const override { return base_->name(); }
    std::int64_t rows() const override { return base_->rows(); }
    std::int64_t columns() const override { return base_->columns(); }
    void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
      base_->ReadRows(begin, end, out);
      for (float* at = out; at != out + (end - begin) * columns(); ++at) {
        *at = infer::Bf16ToFloat(infer::FloatToBf16(*at));
      }
    }

   private:
    std::shared_ptr<const infer::WeightTensor> base_;
  };

  std::shared_ptr<const infer::WeightSource> base_;
};

/// What the embedded judge's margin does not show: how sure it is to answer with one of its words,
/// and whether the type of the arithmetic changes verdicts. Filter rows of
/// tests/data/judge_eval.jsonl, in the product's layout and ids, every kStride-th.
class LabelMass : public testing::Test {
 protected:
  static constexpr std::size_t kStride = 9;
  static constexpr std::size_t kRowsAtATime = 8;  ///< each has logits over the whole vocabulary

  struct Answers {
    std::vector<double> mass;  ///< probability of all spellings of both answer words
    std::vector<double> margins;
  };

  void SetUp() override {
    const std::filesystem::path path =
        std::filesystem::path(QUAIL_DEPS_DIR) / "models/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no embedded model";
    file_ = spec::GgufFile::Open(path);
    Config config;
    config.model = path.string();
    host_ = std::make_unique<session::ModelHost>(config, pool_);
    ReadPrompts();
  }

  void Append(const std::vector<text::PromptPiece>& pieces, const std::string& document,
              std::vector<text::TokenId>& ids) const {
    for (const text::PromptPiece& piece : pieces) {
      ASSERT_FALSE(host_->tokenizer()->Encode(piece.argument < 0 ? piece.literal : document, ids));
    }
  }

  void ReadPrompts() {
    std::ifstream stream(QUAIL_SOURCE_DIR "/tests/data/judge_eval.jsonl");
    std::string line;
    for (std::size_t number = 0; std::getline(stream, line); ++number) {
      const auto row = nlohmann::json::parse(line);
      if (number % kStride != 0 || row.contains("partner")) continue;
      const text::FilterPrompt prompt = text::LayOutFilter(
          text::PromptTemplate::Parse(row["question"].get<std::string>() + " {0}"),
          host_->answers().words);
      std::vector<text::TokenId> ids;
      Append(prompt.document, row["text"], ids);
      Append(prompt.question, row["text"], ids);
      prompts_.emplace_back();
      for (const text::TokenId id : ids) prompts_.back().push_back(id.value());
    }
  }

  std::shared_ptr<const infer::WeightSource> RawWeights() const {
    return infer::OpenGgufWeights(file_, host_->spec());
  }

  std::shared_ptr<const infer::WeightSource> JudgeWeights() const {
    return infer::ApplyAdapter(
        RawWeights(),
        infer::Adapter::Open(QUAIL_SOURCE_DIR "/models/smollm2-135m-judge/adapter.safetensors"),
        host_->spec());
  }

  Answers Ask(ElementType type, const std::shared_ptr<const infer::WeightSource>& weights) {
    infer::cpu::CpuOptions options;
    options.type = type;
    const auto backend = infer::cpu::CreateCpuBackend(options);
    std::vector<std::int32_t> vocabulary(static_cast<std::size_t>(host_->spec().vocabulary));
    std::iota(vocabulary.begin(), vocabulary.end(), 0);
    const auto model = infer::LoadModel({host_->spec(), vocabulary, false}, *weights, *backend);
    backend->ReserveKv({host_->spec().layers, host_->spec().kv_heads, host_->spec().head_dim}, 0);
    Answers answers;
    for (std::size_t begin = 0; begin < prompts_.size(); begin += kRowsAtATime) {
      const infer::PrefillBatch batch = Batch(begin);
      const auto chunk = backend->Begin(batch);
      model->Forward(*backend, *chunk, batch, nullptr);
      const auto logits = backend->Wait(*chunk).answer_logits;
      for (std::size_t i = 0; i < batch.answer_rows.size(); ++i) {
        Read(logits.subspan(i * vocabulary.size(), vocabulary.size()), answers);
      }
    }
    return answers;
  }

  infer::PrefillBatch Batch(std::size_t begin) const {
    infer::PrefillBatch batch;
    for (std::size_t i = begin; i < std::min(begin + kRowsAtATime, prompts_.size()); ++i) {
      const auto count = static_cast<std::int32_t>(prompts_[i].size());
      batch.runs.push_back({batch.rows(), count, 0, 0});
      for (std::int32_t position = 0; position < count; ++position) {
        batch.tokens.push_back(prompts_[i][static_cast<std::size_t>(position)]);
        batch.positions.push_back(position);
        batch.kv_slots.push_back(-1);
      }
      batch.answer_rows.push_back(batch.rows() - 1);
    }
    return batch;
  }

  void Read(std::span<const float> logits, Answers& answers) const {
    const double top = *std::max_element(logits.begin(), logits.end());
    double all = 0;
    for (const float logit : logits) all += std::exp(logit - top);
    double listed = 0;
    double best[2] = {-INFINITY, -INFINITY};
    for (const int side : {0, 1}) {
      for (const text::TokenId id : side == 0 ? host_->answers().no : host_->answers().yes) {
        const double logit = logits[static_cast<std::size_t>(id.value())];
        listed += std::exp(logit - top);
        best[side] = std::max(best[side], logit);
      }
    }
    answers.mass.push_back(listed / all);
    answers.margins.push_back(best[1] - best[0]);
  }

  static double Mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }

  base::ThreadPool pool_{1};
  std::shared_ptr<const spec::GgufFile> file_;
  std::unique_ptr<session::ModelHost> host_;
  std::vector<std::vector<std::int32_t>> prompts_;
};

/// Where the processor has no bf16 products, the weights are rounded and the arithmetic stays f32.
TEST_F(LabelMass, AnswersWithItsWordsInEveryType) {
  const bool has_bf16 = !infer::cpu::SupportedBf16Units().empty();
  const Answers exact = Ask(ElementType::kF32, JudgeWeights());
  const Answers rounded =
      has_bf16 ? Ask(ElementType::kBf16, JudgeWeights())
               : Ask(ElementType::kF32, std::make_shared<RoundedWeights>(JudgeWeights()));
  ASSERT_GT(prompts_.size(), 30U);
  EXPECT_GE(Mean(exact.mass), 0.95);
  EXPECT_GE(Mean(rounded.mass), 0.95);
  std::size_t same = 0;
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    same += (exact.margins[i] > 0) == (rounded.margins[i] > 0) ? 1 : 0;
  }
  RecordProperty("bf16_products", has_bf16 ? "yes" : "no");
  RecordProperty("rows", static_cast<int>(prompts_.size()));
  RecordProperty("same", static_cast<int>(same));
  RecordProperty("mass", std::to_string(Mean(exact.mass)));
  EXPECT_GE(static_cast<double>(same), 0.97 * static_cast<double>(prompts_.size()));
}

/// The bound above says something: the model alone puts nearly all of its probability elsewhere.
TEST_F(LabelMass, RawModelAnswersWithOtherWords) {
  prompts_.resize(kRowsAtATime);
  EXPECT_LT(Mean(Ask(ElementType::kF32, RawWeights()).mass), 0.5);
}

}  // namespace
}  // namespace quail
