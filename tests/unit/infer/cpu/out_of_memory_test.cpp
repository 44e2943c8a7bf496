// Case 73 and the engine's fault rule: an allocation of backend or forest that fails, whichever it
// is, ends in one clear error; answers delivered before stay, all KV returns, and the next run is
// right.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "failing_allocation.h"
#include "forest_harness.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/random_weights.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

/// Passes everything on, and arms the failure for what the backend does alone.
class FailingModel final : public Model {
 public:
  explicit FailingModel(const Model& model) : model_(model) {}
  const spec::ModelSpec& spec() const override { return model_.spec(); }
  bool Forward(Backend& backend, Chunk& chunk, const PrefillBatch& batch,
               const base::CancelFlag* cancel) const override {
    if (chunks_++ != fail_in_chunk) return model_.Forward(backend, chunk, batch, cancel);
    const FailingAllocation fails(fail_at);
    return model_.Forward(backend, chunk, batch, cancel);
  }

  long fail_at = 0;
  int fail_in_chunk = -1;
  void Restart() { chunks_ = 0; }

 private:
  const Model& model_;
  mutable int chunks_ = 0;
};

class OneSource final : public ChildSource {
 public:
  explicit OneSource(std::span<const TokenId> tokens) : tokens_(tokens) {}
  std::uint64_t upper_bound() const override { return left_; }
  void Next(std::size_t n, std::vector<Leaf>& leaves) override {
    for (; n > 0 && left_ > 0; --n) leaves.push_back({.index = --left_, .tokens = tokens_});
  }

 private:
  std::span<const TokenId> tokens_;
  std::uint64_t left_ = 2;
};

class OutOfMemory : public testing::Test {
 protected:
  OutOfMemory() {
    spec_.family = spec::ModelFamily::kLlama;
    spec_.layers = 1;
    spec_.hidden = 32;
    spec_.heads = 4;
    spec_.kv_heads = 2;
    spec_.head_dim = 8;
    spec_.ffn = 48;
    spec_.vocabulary = 64;
    spec_.context = 4096;
    spec_.tied_head = true;
    for (int i = 0; i < 900; ++i) text_.emplace_back(i * 37 % 64);
  }

  std::unique_ptr<PromptForest> MakeForest(const Model& model, Backend& backend) const {
    ForestConfig config;
    config.kv_tokens = 512;
    config.chunk_tokens = 64;
    config.context_tokens = 400;
    config.true_rows = 1;
    config.answer_rows = 2;
    return PromptForest::Create(model, backend, config);
  }

  using Margins = std::map<std::pair<std::uint32_t, std::uint64_t>, float>;
  /// Six documents of 40 tokens, two asks each. What was answered before an error is kept.
  Margins Ask(PromptForest& forest, ErrorCode* code = nullptr) const {
    std::map<SourceId, std::uint32_t> document;
    for (std::uint32_t i = 0; i < 6; ++i) {
      const NodeId node = forest.Child(
          forest.root(), forest.Segment(std::span(text_).subspan(i * std::size_t{97}, 40)));
      const auto source =
          forest.Add(node, std::make_unique<OneSource>(std::span(text_).subspan(3, 5)), {});
      document[source] = i;
    }
    Margins margins;
    std::vector<Answer> answers;
    try {
      while (forest.Next(answers, nullptr)) {
      }
    } catch (const Error& error) {
      if (code == nullptr) throw;
      *code = error.code();
      message_ = error.what();
    }
    for (const Answer& answer : answers) {
      margins[{document.at(answer.source), answer.index}] = answer.value;
    }
    return margins;
  }

  spec::ModelSpec spec_;
  std::vector<TokenId> text_;
  mutable std::string message_;
};

TEST_F(OutOfMemory, AtAnyAllocationOfAPassIsOneErrorAndTheNextRunIsRight) {
  const auto weights = CreateRandomWeights(spec_, 3);
  const auto backend = cpu::CreateCpuBackend({2, cpu::ElementType::kF32, {}});
  const auto model = LoadModel({spec_, {3, 4}, false}, *weights, *backend);
  backend->ReserveKv({spec_.layers, spec_.kv_heads, spec_.head_dim}, 512);
  const auto clean_forest = MakeForest(*model, *backend);
  const Margins clean = Ask(*clean_forest);
  ASSERT_EQ(clean.size(), 12U);

  FailingModel failing(*model);
  const auto forest = MakeForest(failing, *backend);
  int errors = 0;
  for (const int chunk : {0, 2}) {
    for (long at = 1;; ++at) {
      forest->Clear();
      failing.Restart();
      failing.fail_in_chunk = chunk;
      failing.fail_at = at;
      ErrorCode code = ErrorCode::kUsage;
      const Margins kept = Ask(*forest, &code);
      if (code == ErrorCode::kUsage) {
        EXPECT_EQ(kept, clean);
        break;  // fewer allocations than that
      }
      ++errors;
      EXPECT_EQ(code, ErrorCode::kOutOfMemory) << message_;
      EXPECT_NE(message_.find("tokens"), std::string::npos) << message_;
      EXPECT_EQ(forest->counters().kv_held_tokens, 0);
      EXPECT_EQ(forest->pending(), 0U);
      for (const auto& [key, margin] : kept) EXPECT_EQ(margin, clean.at(key));
      failing.fail_in_chunk = -1;
      EXPECT_EQ(Ask(*forest), clean) << "after an error at allocation " << at;
    }
  }
  EXPECT_GT(errors, 20);
}

/// Filters with groups and labels over documents that begin alike, in an arena that holds a few.
class ForestOutOfMemory : public testing::Test {
 protected:
  static HarnessOptions Options(RadixMode radix) {
    return {.kv_tokens = 300, .chunk_tokens = 64, .context_tokens = 200, .radix = radix};
  }

  using Values = std::map<std::pair<std::uint32_t, std::uint64_t>, float>;

  /// Answers by document and question, up to an error; whether there was none. `fail_at`: the
  /// allocation that fails, 0: none.
  bool Ask(Harness& harness, Values& answers, long fail_at = 0) {
    PromptForest& forest = *harness.forest;
    // All that this function itself needs, so that what fails is the forest's.
    std::vector<std::unique_ptr<ListSource>> sources;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      sources.push_back(std::make_unique<ListSource>(questions_));
    }
    std::vector<SourceId> ids(texts_.size());
    std::vector<Answer> batch;
    batch.reserve(100);
    bool whole = true;
    try {
      const FailingAllocation fails(fail_at);
      const GroupId group = forest.AddGroup({.enough = 100, .selectivity = 0.5});
      for (std::size_t i = 0; i < texts_.size(); ++i) {
        NodeId node = forest.Child(forest.root(), forest.Segment(head_));
        node = forest.Child(node, forest.Segment(texts_[i]));
        forest.Expect(node, 0.5);
        SourceOptions options;
        if (i % 3 == 1) options.group = group;
        if (i % 3 == 2) options.readout = ReadoutKind::kLogProbability;
        ids[i] = forest.Add(node, std::move(sources[i]), options);
      }
      while (forest.Next(batch, nullptr)) {
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
      EXPECT_EQ(forest.pending(), 0U);
      EXPECT_EQ(forest.counters().kv_held_tokens, 0);
      whole = false;
    }
    for (const Answer& answer : batch) {
      const auto source = std::ranges::find(ids, answer.source);
      answers[{static_cast<std::uint32_t>(source - ids.begin()), answer.index}] = answer.value;
    }
    return whole;
  }

  const Tokens head_ = TokensOf(1, 5);
  const std::vector<Tokens> texts_ = {
      TokensOf(10, 40), TokensOf(11, 60), TokensOf(10, 20) + TokensOf(12, 30), TokensOf(13, 90),
      TokensOf(14, 1),  TokensOf(15, 75), TokensOf(13, 50) + TokensOf(16, 10), TokensOf(17, 33)};
  const std::vector<Tokens> questions_ = {TokensOf(20, 4) + TokensOf(21, 5),
                                          TokensOf(20, 4) + TokensOf(22, 3), TokensOf(23, 70)};
};

TEST_F(ForestOutOfMemory, AtAnyAllocationIsOneErrorAndTheNextRunIsRight) {
  for (const RadixMode radix : {RadixMode::kWherePays, RadixMode::kAlways}) {
    Values clean;
    Harness first(Options(radix));
    ASSERT_TRUE(Ask(first, clean));
    ASSERT_EQ(clean.size(), 24U);
    Harness harness(Options(radix));
    long at = 1;
    for (bool failed = true; failed; at = at < 60 ? at + 1 : at + 7) {
      Values kept;
      const bool whole = Ask(harness, kept, at);
      failed = FailingAllocation::happened();
      ASSERT_TRUE(whole || failed);
      for (const auto& [key, value] : kept) ASSERT_EQ(value, clean.at(key)) << at;
      harness.forest->Clear();
      Values again;
      ASSERT_TRUE(Ask(harness, again)) << at;
      ASSERT_EQ(again, clean) << "after an error at allocation " << at;
      harness.forest->Clear();
      ASSERT_EQ(harness.backend.fault(), "");
    }
    EXPECT_GT(at, 200);
  }
}

// A document with a question that waits takes less than 400 bytes, with what the allocator adds and
// leaves between (forest_benchmark): 368 without.
TEST(ForestMemory, WhatWaitsIsSmall) {
  constexpr std::size_t kDocuments = 100'000;
  std::vector<Tokens> texts;
  for (std::size_t i = 0; i < kDocuments; ++i) texts.push_back(TokensOf(i, 4));
  const std::vector<Tokens> questions = {TokensOf(kDocuments, 5)};
  Harness harness({.validate = false});
  const std::size_t before = allocated_bytes;
  for (const Tokens& text : texts) {
    const NodeId node = harness.forest->Child(harness.root(), harness.forest->Segment(text));
    harness.forest->Add(node, std::make_unique<ListSource>(questions), {});
  }
  EXPECT_LT((allocated_bytes - before) / kDocuments, 380U);
  EXPECT_EQ(harness.RunAll().size(), kDocuments);
}

// 10^8 pairs in 1.5 GB: of a pair that is decided nothing stays, of its anchor some hundred bytes.
TEST(ForestMemory, DecidedPairsLeaveNothing) {
  constexpr std::size_t kAnchors = 300;
  constexpr std::size_t kPartners = 2000;
  std::vector<Tokens> partners;
  for (std::size_t i = 0; i < kPartners; ++i) partners.push_back(TokensOf(i, 3));
  std::vector<Tokens> anchors;
  for (std::size_t i = 0; i < kAnchors; ++i) anchors.push_back(TokensOf(kPartners + i, 20));
  Harness harness({.validate = false});
  const std::size_t before = allocated_bytes;
  std::size_t peak = 0;
  std::size_t pairs = 0;
  for (const Tokens& anchor : anchors) {
    const NodeId node = harness.forest->Child(harness.root(), harness.forest->Segment(anchor));
    harness.forest->Add(node, std::make_unique<ListSource>(partners), {});
  }
  for (std::vector<Answer> answers; harness.forest->Next(answers, nullptr); answers.clear()) {
    pairs += answers.size();
    peak = std::max(peak, allocated_bytes - before);
  }
  EXPECT_EQ(pairs, kAnchors * kPartners);
  EXPECT_LT(peak, pairs) << "all that was allocated at a time is less than a byte a pair";
}

}  // namespace
}  // namespace quail::infer
