#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cuda_tolerance.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/weights/fp8_block_weights.h"
#include "model_fixture.h"
#include "poisoned_weights.h"
#include "quail/error.h"
#include "shared_paths.h"

namespace quail::parity {
namespace {

using Activations = ReferenceModel::Activations;

struct Shape {
  const char* name;
  spec::ModelFamily family;
  std::int32_t head_dim;
  std::int32_t heads;
  std::int32_t kv_heads;
  Activations activations = Activations::kExact;

  bool fp8() const { return activations != Activations::kExact; }
  infer::cuda::PowerOfTwoScales power_of_two_scales() const {
    if (activations == Activations::kFp8PowerOfTwo) return infer::cuda::PowerOfTwoScales::kAll;
    return activations == Activations::kFp8AttentionPowerOfTwo
               ? infer::cuda::PowerOfTwoScales::kAttention
               : infer::cuda::PowerOfTwoScales::kNone;
  }
  infer::cuda::CudaOptions options() const {
    return {.max_chunk_tokens = 4096,
            .power_of_two_scales = power_of_two_scales(),
            .poison_activations = true};
  }
};

/// The attention instantiations that public models use; the shapes are otherwise as odd as the
/// kernels allow.
constexpr Shape kShapes[] = {
    {"llama_64x3", spec::ModelFamily::kLlama, 64, 9, 3},
    {"qwen2_64x7", spec::ModelFamily::kQwen2, 64, 14, 2},
    {"qwen3_128x4", spec::ModelFamily::kQwen3, 128, 8, 2},
    {"qwen3_128x8", spec::ModelFamily::kQwen3, 128, 8, 1},
    {"qwen3_128x4_fp8", spec::ModelFamily::kQwen3, 128, 8, 2, Activations::kFp8},
    {"qwen3_128x4_ue8m0", spec::ModelFamily::kQwen3, 128, 8, 2, Activations::kFp8PowerOfTwo},
    {"qwen3_128x4_vllm", spec::ModelFamily::kQwen3, 128, 8, 2,
     Activations::kFp8AttentionPowerOfTwo},
};

spec::ModelSpec SpecOf(const Shape& shape) {
  spec::ModelSpec spec = TinySpec(shape.family);
  spec.head_dim = shape.head_dim;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.hidden = shape.fp8() ? 256 : 200;
  spec.ffn = shape.fp8() ? 384 : 328;
  spec.weight_type = shape.fp8() ? spec::WeightType::kFp8Block : spec::WeightType::kBf16;
  return spec;
}

std::shared_ptr<const infer::WeightSource> WeightsOf(const Shape& shape) {
  std::shared_ptr<const infer::WeightSource> weights = infer::CreateRandomWeights(SpecOf(shape), 7);
  if (shape.fp8()) weights = infer::QuantizeToFp8Blocks(weights);
  return shape.power_of_two_scales() != infer::cuda::PowerOfTwoScales::kNone
             ? infer::QuantizeToFp8Blocks(weights, infer::BlockScale::kPowerOfTwo)
             : weights;
}

Tolerance ToleranceOf(const Shape& shape) { return shape.fp8() ? kModelFp8 : kModelBf16; }

class CudaParity : public testing::TestWithParam<Shape> {
 protected:
  CudaParity()
      : spec_(SpecOf(GetParam())),
        weights_(WeightsOf(GetParam())),
        reference_(spec_, *weights_, GetParam().activations),
        loaded_(spec_, *weights_, infer::cuda::CreateCudaBackend(GetParam().options())) {}

  void ExpectReference(const std::vector<float>& logits, const Tokens& path) {
    const std::vector<double> wanted = ReferenceLogits(reference_, path);
    const ErrorShare error = MeasureError<float>(logits, wanted);
    const Tolerance tolerance = ToleranceOf(GetParam());
    EXPECT_LE(error.largest, tolerance.largest) << "path of " << path.size();
    EXPECT_LE(error.rms, tolerance.rms) << "path of " << path.size();
    worst_ = std::max(worst_, error.rms);
    worst_value_ = std::max(worst_value_, error.largest);
  }

  void TearDown() override {
    RecordProperty("worst_rms", std::to_string(worst_));
    RecordProperty("worst_value", std::to_string(worst_value_));
  }

  void FillArena(const Tokens& tokens, std::int64_t first_slot) {
    BatchBuilder builder;
    builder.Add(tokens, {}, {.first_slot = first_slot, .answer = false});
    EXPECT_TRUE(loaded_.Run(builder.batch()).logits.empty());
  }

  spec::ModelSpec spec_;
  std::shared_ptr<const infer::WeightSource> weights_;
  ReferenceModel reference_;
  LoadedModel loaded_;
  double worst_ = 0;
  double worst_value_ = 0;
};

TEST_P(CudaParity, RaggedLengthsPackedTogether) {
  const std::vector<std::size_t> lengths = {1,  2,  15, 16,  17,  31,  32, 33,
                                            63, 64, 65, 127, 128, 129, 200};
  BatchBuilder builder;
  for (const std::size_t length : lengths) {
    builder.Add(MakeTokens(length, static_cast<std::uint32_t>(length)), {}, {});
  }
  const LoadedModel::Result packed = loaded_.Run(builder.batch());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    ExpectReference(packed.row(i), MakeTokens(lengths[i], static_cast<std::uint32_t>(lengths[i])));
  }
}

TEST_P(CudaParity, Case46KeysFromTheArena) {
  for (const std::size_t prefix_length : {1U, 63U, 64U, 65U, 127U, 150U}) {
    const Tokens prefix = MakeTokens(prefix_length, 1);
    const auto length = static_cast<std::int32_t>(prefix_length);
    FillArena(prefix, 100);
    for (const std::size_t suffix_length : {1U, 3U, 70U}) {
      const Tokens suffix = MakeTokens(suffix_length, 2);
      BatchBuilder builder;
      builder.Add(suffix, {{100, length, kArena}}, {.first_position = length});
      ExpectReference(loaded_.Run(builder.batch()).row(0), Join({prefix, suffix}));
    }
  }
}

TEST_P(CudaParity, PathsSplitOverArenaAndChunk) {
  const auto [paths, result] = AnswerSplitPaths(loaded_);
  for (std::size_t i = 0; i < paths.size(); ++i) ExpectReference(result.row(i), paths[i]);
}

TEST_P(CudaParity, Case47ManyPartnersOfOneAnchor) {
  const auto [paths, result] = AnswerPartners(loaded_, 60);
  for (std::size_t i = 0; i < paths.size(); i += 3) ExpectReference(result.row(i), paths[i]);
}

TEST_P(CudaParity, Case53SuffixSeesAllOfThePrefixAndNotItsOwnFuture) {
  FillArena(MakeTokens(100, 1), 0);
  const auto run = [&](const Tokens& suffix) {
    BatchBuilder builder;
    builder.Add(suffix, {{0, 100, kArena}}, {.first_position = 100});
    builder.batch().answer_rows = {0, 1, 2};
    return loaded_.Run(builder.batch());
  };
  const auto plain = run({5, 6, 7});
  const auto perturbed = run({5, 6, 8});
  EXPECT_EQ(plain.row(0), perturbed.row(0));
  EXPECT_EQ(plain.row(1), perturbed.row(1));
  EXPECT_NE(plain.row(2), perturbed.row(2));
  ExpectReference(plain.row(0), Join({MakeTokens(100, 1), {5}}));
}

TEST_P(CudaParity, Case50EmptySpansAndRunsChangeNothing) {
  const Tokens tokens = MakeTokens(10, 3);
  BatchBuilder builder;
  builder.Add({}, {}, {});
  builder.Add(tokens, {{0, 0, kArena}, {0, 0, kChunk}}, {});
  builder.Add({}, {{0, 0, kArena}}, {});
  ExpectReference(loaded_.Run(builder.batch()).row(0), tokens);
}

TEST_P(CudaParity, Case56LongPositions) {
  for (const std::int32_t position : {4095, 40000}) {
    const Tokens tokens = MakeTokens(20, 8);
    BatchBuilder builder;
    builder.Add(tokens, {}, {.first_position = position});
    const auto path = reference_.Run(tokens, position);
    std::vector<double> wanted;
    for (std::size_t i = 0; i < LoadedModel::kAnswers; ++i) {
      wanted.push_back(
          reference_.Logit(path.normed.back(), LoadedModel::kFirstAnswer + static_cast<int>(i)));
    }
    const ErrorShare error = MeasureError<float>(loaded_.Run(builder.batch()).row(0), wanted);
    EXPECT_LE(error.rms, ToleranceOf(GetParam()).rms) << position;
  }
}

TEST_P(CudaParity, LogProbabilities) {
  const Tokens tokens = MakeTokens(30, 4);
  BatchBuilder builder;
  const std::int32_t row = builder.Add(tokens, {}, {});
  for (std::int32_t i = 5; i < 29; ++i) {
    builder.batch().scored_tokens.push_back({row + i, tokens[static_cast<std::size_t>(i + 1)]});
  }
  const LoadedModel::Result result = loaded_.Run(builder.batch());
  const auto path = reference_.Run(tokens);
  std::vector<double> wanted;
  for (const infer::ScoredToken& scored : builder.batch().scored_tokens) {
    const auto& normed = path.normed[static_cast<std::size_t>(scored.row)];
    wanted.push_back(reference_.LogProbability(normed, scored.token));
  }
  // A log-probability is a logit less the row's normaliser: it may be as wrong as both.
  const ErrorShare error = MeasureError<float>(result.log_probs, wanted);
  EXPECT_LE(error.largest, 2 * ToleranceOf(GetParam()).largest);
  EXPECT_LE(error.rms, 2 * ToleranceOf(GetParam()).rms);
  RecordProperty("log_prob_rms", std::to_string(error.rms));
  ExpectReference(result.row(0), tokens);
}

// More tiles than a GPU has multiprocessors, in every kernel: a block that is done with one writes
// while others still read.
TEST_P(CudaParity, AFullChunkGivesWhatItsPathsGiveAlone) {
  spec::ModelSpec spec = spec_;
  spec.ffn = 1280;
  auto weights = infer::CreateRandomWeights(spec, 8);
  if (GetParam().fp8()) weights = infer::QuantizeToFp8Blocks(weights);
  LoadedModel model(spec, *weights, infer::cuda::CreateCudaBackend(GetParam().options()));
  BatchBuilder builder;
  for (std::uint32_t i = 0; i < 60; ++i) builder.Add(MakeTokens(65, i), {}, {});
  const LoadedModel::Result packed = model.Run(builder.batch());
  std::vector<float> got;
  std::vector<double> wanted;
  for (std::uint32_t i = 0; i < 60; ++i) {
    const std::vector<float> row = packed.row(i), alone = model.Alone(MakeTokens(65, i));
    got.insert(got.end(), row.begin(), row.end());
    wanted.insert(wanted.end(), alone.begin(), alone.end());
  }
  const ErrorShare error = MeasureError<float>(got, wanted);
  // Both are as wrong as the model may be.
  EXPECT_LE(error.rms, ToleranceOf(GetParam()).rms);
  RecordProperty("packed_rms", std::to_string(error.rms));
}

TEST_P(CudaParity, TwoRunsAreBitEqual) {
  BatchBuilder builder;
  for (std::uint32_t i = 0; i < 30; ++i) builder.Add(MakeTokens(3 + 11 * (i % 13), i), {}, {});
  EXPECT_EQ(loaded_.Run(builder.batch()).logits, loaded_.Run(builder.batch()).logits);
}

TEST_P(CudaParity, Case32NanInOneDocumentLeavesItsNeighboursBitEqual) {
  constexpr std::int32_t kPoison = 300;
  const PoisonedWeights poisoned(weights_, kPoison);
  LoadedModel model(spec_, poisoned, infer::cuda::CreateCudaBackend(GetParam().options()));
  const auto build = [&](std::int32_t token) {
    BatchBuilder builder;
    for (std::uint32_t i = 0; i < 8; ++i) {
      Tokens tokens = MakeTokens(9, i, 299);
      if (i == 3) tokens[4] = token;
      builder.Add(tokens, {}, {});
    }
    return builder;
  };
  BatchBuilder clean = build(5);
  BatchBuilder bad = build(kPoison);
  const LoadedModel::Result wanted = model.Run(clean.batch());
  const LoadedModel::Result got = model.Run(bad.batch());
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == 3) {
      EXPECT_TRUE(std::isnan(got.row(i)[0]));
    } else {
      EXPECT_EQ(got.row(i), wanted.row(i)) << i;
    }
  }
}

TEST_P(CudaParity, KvLeavesTheDeviceAndComesBack) {
  const Tokens prefix = MakeTokens(90, 1);
  FillArena(prefix, 64);
  const auto bytes = static_cast<std::size_t>(loaded_.backend().info().kv_bytes_per_token) * 90;
  std::vector<std::byte> host(bytes);
  loaded_.backend().CopyKvOut(64, 90, host);
  FillArena(MakeTokens(90, 77), 64);
  loaded_.backend().CopyKvIn(1000, 90, host);
  BatchBuilder builder;
  builder.Add(MakeTokens(4, 2), {{1000, 90, kArena}}, {.first_position = 90});
  ExpectReference(loaded_.Run(builder.batch()).row(0), Join({prefix, MakeTokens(4, 2)}));
}

INSTANTIATE_TEST_SUITE_P(Shapes, CudaParity, testing::ValuesIn(kShapes),
                         [](const auto& shape) { return shape.param.name; });

TEST(CudaBackend, ShapesWithoutAKernelAreRefused) {
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kLlama);
  const auto backend = infer::cuda::CreateCudaBackend({.max_chunk_tokens = 64});
  EXPECT_THROW(backend->Configure({spec, {std::vector<float>(10)}}), Error);
}

}  // namespace
}  // namespace quail::parity
