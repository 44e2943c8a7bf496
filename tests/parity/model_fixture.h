#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "infer/backend.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/model.h"
#include "infer/weights/random_weights.h"
#include "reference_forward.h"

namespace quail::parity {

/// Largest error allowed, as a share of the reference's standard deviation: of one value, and root
/// mean square.
struct Tolerance {
  double largest;
  double rms;
};
inline Tolerance ToleranceOf(infer::cpu::ElementType type) {
  switch (type) {
    case infer::cpu::ElementType::kF32:
      return {1e-4, 2e-5};
    case infer::cpu::ElementType::kBf16:
      return {0.2, 0.05};
  }
  return {0, 0};
}

/// Beside a reference that rounds to int8 alike: of f32, what a value costs that f32 brings to the
/// other side of a step; of bf16 the same beside its own noise.
inline Tolerance ToleranceOfInt8(infer::cpu::ElementType type) {
  return type == infer::cpu::ElementType::kF32 ? Tolerance{0.05, 0.02} : Tolerance{0.25, 0.1};
}

/// Largest code of an int8 weight on this processor.
inline std::int32_t Int8WeightLimit() {
  return infer::cpu::LinearEngine(infer::cpu::ElementType::kF32, infer::cpu::ProductType::kInt8)
      .weight_limit();
}

/// Small, but nothing in it is a round number of vectors, tiles or blocks.
inline spec::ModelSpec TinySpec(spec::ModelFamily family) {
  spec::ModelSpec spec;
  spec.name = "tiny";
  spec.family = family;
  spec.layers = 3;
  spec.hidden = 72;
  spec.heads = 6;
  spec.kv_heads = 2;
  spec.head_dim = 20;
  spec.ffn = 116;
  spec.vocabulary = 307;
  spec.context = 65536;
  spec.rope_theta = 10000.0;
  spec.qk_norm = spec::TraitsOf(family).qk_norm;
  spec.qkv_bias = spec::TraitsOf(family).qkv_bias;
  spec.tied_head = family == spec::ModelFamily::kLlama;
  return spec;
}

inline std::vector<std::int32_t> MakeTokens(std::size_t count, std::uint32_t seed,
                                            std::int32_t vocabulary = 307) {
  std::vector<std::int32_t> tokens;
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    tokens.push_back(
        static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(vocabulary)));
  }
  return tokens;
}

/// Puts together a PrefillBatch run by run.
class BatchBuilder {
 public:
  struct RunOptions {
    std::int32_t first_position = 0;
    std::int64_t first_slot = -1;  ///< of the arena, -1: written nowhere
    bool answer = true;            ///< the last row is an answer row
  };

  /// Returns the run's first row.
  std::int32_t Add(std::span<const std::int32_t> tokens, const std::vector<infer::KeySpan>& spans,
                   const RunOptions& options) {
    const std::int32_t first = batch_.rows();
    const auto count = static_cast<std::int32_t>(tokens.size());
    batch_.runs.push_back({first, count, static_cast<std::int32_t>(batch_.spans.size()),
                           static_cast<std::int32_t>(spans.size())});
    batch_.spans.insert(batch_.spans.end(), spans.begin(), spans.end());
    for (std::int32_t i = 0; i < count; ++i) {
      batch_.tokens.push_back(tokens[static_cast<std::size_t>(i)]);
      batch_.positions.push_back(options.first_position + i);
      batch_.kv_slots.push_back(options.first_slot < 0 ? -1 : options.first_slot + i);
    }
    if (options.answer && count > 0) batch_.answer_rows.push_back(first + count - 1);
    return first;
  }

  infer::PrefillBatch& batch() { return batch_; }

 private:
  infer::PrefillBatch batch_;
};

/// A model in a backend, to stand beside its reference.
class LoadedModel {
 public:
  LoadedModel(const spec::ModelSpec& spec, const infer::WeightSource& weights,
              const infer::cpu::CpuOptions& options, std::int64_t slots = 4096)
      : LoadedModel(spec, weights, infer::cpu::CreateCpuBackend(options), slots) {}

  LoadedModel(const spec::ModelSpec& spec, const infer::WeightSource& weights,
              std::unique_ptr<infer::Backend> backend, std::int64_t slots = 4096)
      : backend_(std::move(backend)) {
    std::vector<std::int32_t> answers(16);
    std::iota(answers.begin(), answers.end(), 3);
    model_ = infer::LoadModel({spec, answers, true}, weights, *backend_);
    backend_->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, slots);
  }

  static constexpr std::size_t kAnswers = 16;
  static constexpr std::int32_t kFirstAnswer = 3;

  infer::Backend& backend() { return *backend_; }
  const infer::Model& model() const { return *model_; }

  struct Result {
    std::vector<float> logits;     ///< [A, kAnswers]
    std::vector<float> log_probs;  ///< [S]
    std::vector<float> row(std::size_t i) const {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i * kAnswers);
      return {begin, begin + kAnswers};
    }
  };
  Result Run(const infer::PrefillBatch& batch) {
    const auto chunk = backend_->Begin(batch);
    model_->Forward(*backend_, *chunk, batch, nullptr);
    const infer::ChunkResult result = backend_->Wait(*chunk);
    return {{result.answer_logits.begin(), result.answer_logits.end()},
            {result.log_probs.begin(), result.log_probs.end()}};
  }
  /// The answer logits after `tokens`, computed alone.
  std::vector<float> Alone(std::span<const std::int32_t> tokens) {
    BatchBuilder builder;
    builder.Add(tokens, {}, {});
    return Run(builder.batch()).row(0);
  }

 private:
  std::unique_ptr<infer::Backend> backend_;
  std::unique_ptr<infer::Model> model_;
};

/// Answer logits of the reference after `tokens`.
inline std::vector<double> ReferenceLogits(const ReferenceModel& reference,
                                           std::span<const std::int32_t> tokens) {
  const auto path = reference.Run(tokens);
  std::vector<double> logits;
  for (std::size_t i = 0; i < LoadedModel::kAnswers; ++i) {
    logits.push_back(reference.Logit(path.normed.back(),
                                     LoadedModel::kFirstAnswer + static_cast<std::int32_t>(i)));
  }
  return logits;
}

/// Errors of `got` as shares of the standard deviation of `wanted`.
struct ErrorShare {
  double largest = 0;
  double rms = 0;
};
template <typename Got>
ErrorShare MeasureError(std::span<const Got> got, std::span<const double> wanted) {
  double mean = 0;
  double squares = 0;
  ErrorShare error;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - wanted[i]);
    // A comparison that NaN fails, so that NaN counts as the largest error.
    if (!(difference <= error.largest)) error.largest = difference;
    error.rms += difference * difference;
    mean += wanted[i];
    squares += wanted[i] * wanted[i];
  }
  const auto count = static_cast<double>(wanted.size());
  const double deviation = std::sqrt(squares / count - mean / count * (mean / count));
  return {error.largest / deviation, std::sqrt(error.rms / count) / deviation};
}

}  // namespace quail::parity
