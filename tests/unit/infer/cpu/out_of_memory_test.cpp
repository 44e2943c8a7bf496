// Case 73 and the engine's fault rule: an allocation of the backend that fails, whichever it is,
// ends in one clear error; answers delivered before stay, all KV returns, and the next run is
// right.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "infer/cpu/cpu_backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/random_weights.h"
#include "quail/error.h"

namespace {

// While armed, the allocation that brings this to zero fails.
std::atomic<bool> armed{false};
std::atomic<long> left{0};

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (armed.load(std::memory_order_relaxed) && left.fetch_sub(1) == 1) throw std::bad_alloc();
  const std::size_t wanted = bytes == 0 ? 1 : bytes;
  const std::size_t rounded = (wanted + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

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
    left = fail_at;
    armed = true;
    const struct Disarm {
      ~Disarm() { armed = false; }
    } disarm;
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

}  // namespace
}  // namespace quail::infer
