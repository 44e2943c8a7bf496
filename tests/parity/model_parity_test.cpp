#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "int8_weights.h"
#include "model_fixture.h"
#include "poisoned_weights.h"
#include "quail/error.h"
#include "shared_paths.h"
#include "spec/known_shapes.h"

namespace quail::parity {
namespace {

using infer::KeySpan;
using infer::cpu::CpuOptions;
using infer::cpu::ElementType;
using infer::cpu::ProductType;

struct Setting {
  spec::ModelFamily family = spec::ModelFamily::kLlama;
  ElementType type = ElementType::kF32;
  std::optional<infer::cpu::Isa> isa;
  std::optional<infer::cpu::Bf16Unit> unit = std::nullopt;
  ProductType products = ProductType::kElements;

  bool int8() const { return products == ProductType::kInt8; }
};

/// Every family in f32, the first with each instruction set, the last on each bf16 unit; int8
/// products with both.
std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const spec::FamilyTraits& traits : spec::Families()) {
    settings.push_back({traits.family, ElementType::kF32, {}});
  }
  for (const infer::cpu::Isa isa : infer::cpu::SupportedIsas()) {
    settings.push_back({spec::ModelFamily::kLlama, ElementType::kF32, isa});
  }
  for (const infer::cpu::Bf16Unit unit : infer::cpu::SupportedBf16Units()) {
    settings.push_back({spec::ModelFamily::kQwen3, ElementType::kBf16, {}, unit});
  }
  settings.push_back(
      {spec::ModelFamily::kQwen2, ElementType::kF32, {}, std::nullopt, ProductType::kInt8});
  if (infer::cpu::BestType(ProductType::kInt8) == ElementType::kBf16) {
    settings.push_back(
        {spec::ModelFamily::kQwen3, ElementType::kBf16, {}, std::nullopt, ProductType::kInt8});
  }
  return settings;
}

class ModelParity : public testing::TestWithParam<Setting> {
 protected:
  ModelParity()
      : spec_(TinySpec(GetParam().family)),
        weights_(infer::CreateRandomWeights(spec_, 7)),
        reference_(MakeReference()),
        loaded_(spec_, *weights_, Options()) {}

  ReferenceModel MakeReference() const {
    if (!GetParam().int8()) return {spec_, *weights_};
    return {spec_, Int8Weights(weights_, Int8WeightLimit()), ReferenceModel::Activations::kInt8};
  }

  static CpuOptions Options(std::size_t threads = 2) {
    CpuOptions options{threads, GetParam().type, GetParam().isa};
    options.products = GetParam().products;
    if (GetParam().unit) options.bf16 = &infer::cpu::SelectBf16Kernels(GetParam().unit);
    return options;
  }
  Tolerance tolerance() const {
    return GetParam().int8() ? ToleranceOfInt8(GetParam().type) : ToleranceOf(GetParam().type);
  }

  void ExpectReference(const std::vector<float>& logits, const Tokens& path) {
    const std::vector<double> wanted = ReferenceLogits(reference_, path);
    const ErrorShare error = MeasureError<float>(logits, wanted);
    EXPECT_LE(error.largest, tolerance().largest) << "path of " << path.size();
    EXPECT_LE(error.rms, tolerance().rms) << "path of " << path.size();
  }

  spec::ModelSpec spec_;
  std::shared_ptr<const infer::WeightSource> weights_;
  ReferenceModel reference_;
  LoadedModel loaded_;
};

TEST_P(ModelParity, RaggedLengthsAloneAndPackedTogether) {
  const std::vector<std::size_t> lengths = {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200};
  BatchBuilder builder;
  for (const std::size_t length : lengths) {
    builder.Add(MakeTokens(length, static_cast<std::uint32_t>(length)), {}, {});
  }
  const LoadedModel::Result packed = loaded_.Run(builder.batch());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Tokens tokens = MakeTokens(lengths[i], static_cast<std::uint32_t>(lengths[i]));
    ExpectReference(packed.row(i), tokens);
    EXPECT_EQ(packed.row(i), loaded_.Alone(tokens)) << lengths[i];
  }
}

TEST_P(ModelParity, Case46CachedEqualsFreshBitForBit) {
  for (const std::size_t prefix_length :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{150}}) {
    const Tokens prefix = MakeTokens(prefix_length, 1);
    const auto length = static_cast<std::int32_t>(prefix_length);
    BatchBuilder first;
    first.Add(prefix, {}, {.first_slot = 100, .answer = false});
    first.batch().answer_rows.clear();
    loaded_.Run(first.batch());
    for (const std::size_t suffix_length : {std::size_t{1}, std::size_t{3}, std::size_t{70}}) {
      const Tokens suffix = MakeTokens(suffix_length, 2);
      BatchBuilder second;
      second.Add(suffix, {{100, length, kArena}}, {.first_position = length});
      const std::vector<float> cached = loaded_.Run(second.batch()).row(0);
      EXPECT_EQ(cached, loaded_.Alone(Join({prefix, suffix}))) << prefix_length;
      ExpectReference(cached, Join({prefix, suffix}));
    }
  }
}

TEST_P(ModelParity, Case46SplitPathsInArenaAndChunkEqualFreshBitForBit) {
  const auto [paths, result] = AnswerSplitPaths(loaded_);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(result.row(i), loaded_.Alone(paths[i])) << i;
    ExpectReference(result.row(i), paths[i]);
  }
}

TEST_P(ModelParity, Case47ManyPartnersOfOneAnchorAnswerAsAlone) {
  const auto [paths, result] = AnswerPartners(loaded_, 40);
  for (std::size_t i = 0; i < paths.size(); i += 3) {
    EXPECT_EQ(result.row(i), loaded_.Alone(paths[i])) << i;
    ExpectReference(result.row(i), paths[i]);
  }
}

TEST_P(ModelParity, ThreadsDoNotChangeABit) {
  LoadedModel one(spec_, *weights_, Options(1));
  LoadedModel three(spec_, *weights_, Options(3));
  for (const std::size_t length : {std::size_t{1}, std::size_t{40}, std::size_t{300}}) {
    const Tokens tokens = MakeTokens(length, 9);
    EXPECT_EQ(one.Alone(tokens), three.Alone(tokens)) << length;
  }
}

TEST_P(ModelParity, Case53SuffixSeesAllOfThePrefixAndNotItsOwnFuture) {
  const Tokens prefix = MakeTokens(100, 1);
  BatchBuilder first;
  first.Add(prefix, {}, {.first_slot = 0, .answer = false});
  loaded_.Run(first.batch());
  const auto run = [&](Tokens suffix) {
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
  ExpectReference(plain.row(0), Join({prefix, {5}}));
  ExpectReference(plain.row(1), Join({prefix, {5, 6}}));
}

TEST_P(ModelParity, Case50EmptySpansAndRunsChangeNothing) {
  const Tokens tokens = MakeTokens(10, 3);
  BatchBuilder builder;
  builder.Add({}, {}, {});
  builder.Add(tokens, {{0, 0, kArena}, {0, 0, kChunk}}, {});
  builder.Add({}, {{0, 0, kArena}}, {});
  EXPECT_EQ(loaded_.Run(builder.batch()).row(0), loaded_.Alone(tokens));
}

TEST_P(ModelParity, ABatchWithoutRowsGivesNoAnswers) {
  const infer::PrefillBatch batch;
  EXPECT_TRUE(loaded_.Run(batch).logits.empty());
}

TEST_P(ModelParity, ABatchWithoutAnswersStillWritesKv) {
  const Tokens prefix = MakeTokens(20, 1);
  BatchBuilder first;
  first.Add(prefix, {}, {.first_slot = 5, .answer = false});
  EXPECT_TRUE(loaded_.Run(first.batch()).logits.empty());
  BatchBuilder second;
  second.Add(MakeTokens(2, 2), {{5, 20, kArena}}, {.first_position = 20});
  ExpectReference(loaded_.Run(second.batch()).row(0), Join({prefix, MakeTokens(2, 2)}));
}

TEST_P(ModelParity, LogProbabilitiesEqualTheReference) {
  const Tokens tokens = MakeTokens(30, 4);
  BatchBuilder builder;
  builder.Add(MakeTokens(7, 1), {}, {});
  const std::int32_t row = builder.Add(tokens, {}, {});
  for (std::int32_t i = 20; i < 29; ++i) {
    builder.batch().scored_tokens.push_back({row + i, tokens[static_cast<std::size_t>(i + 1)]});
  }
  builder.batch().scored_tokens.push_back({row + 28, 306});
  const LoadedModel::Result result = loaded_.Run(builder.batch());
  const auto path = reference_.Run(tokens);
  ASSERT_EQ(result.log_probs.size(), 10U);
  const bool rounded = GetParam().type == ElementType::kBf16 || GetParam().int8();
  const double allowed = rounded ? 0.15 : 1e-4;
  for (std::size_t i = 0; i < 10; ++i) {
    const auto& scored = builder.batch().scored_tokens[i];
    const double wanted = reference_.LogProbability(
        path.normed[static_cast<std::size_t>(scored.row - row)], scored.token);
    EXPECT_NEAR(result.log_probs[i], wanted, allowed) << i;
  }
}

TEST_P(ModelParity, KvLeavesAndComesBack) {
  const Tokens prefix = MakeTokens(70, 1);
  BatchBuilder first;
  first.Add(prefix, {}, {.first_slot = 30, .answer = false});
  loaded_.Run(first.batch());
  const auto slot_bytes = static_cast<std::size_t>(loaded_.backend().info().kv_bytes_per_token);
  std::vector<std::byte> host(70 * slot_bytes);
  loaded_.backend().CopyKvOut(30, 70, host);
  // Back to other slots, in two pieces.
  loaded_.backend().CopyKvIn(2000, 20, std::span(host).first(20 * slot_bytes));
  loaded_.backend().CopyKvIn(1000, 50, std::span(host).subspan(20 * slot_bytes));
  BatchBuilder second;
  second.Add(MakeTokens(3, 2), {{2000, 20, kArena}, {1000, 50, kArena}}, {.first_position = 70});
  EXPECT_EQ(loaded_.Run(second.batch()).row(0), loaded_.Alone(Join({prefix, MakeTokens(3, 2)})));
}

// Case 64: what the tolerances must not let through.
TEST_P(ModelParity, Case64WrongDescriptorsAreFarOutsideTheTolerance) {
  const Tokens prefix = MakeTokens(80, 1);
  const Tokens suffix = MakeTokens(5, 2);
  BatchBuilder first;
  first.Add(prefix, {}, {.first_slot = 10, .answer = false});
  loaded_.Run(first.batch());
  const std::vector<double> wanted = ReferenceLogits(reference_, Join({prefix, suffix}));
  const auto error_with = [&](std::vector<KeySpan> spans, std::int32_t position) {
    BatchBuilder builder;
    builder.Add(suffix, spans, {.first_position = position});
    return MeasureError<float>(loaded_.Run(builder.batch()).row(0), wanted).rms;
  };
  ASSERT_LE(error_with({{10, 80, kArena}}, 80), tolerance().rms);
  // What rounding hides in one answer of a tiny random model is caught in f32.
  if (GetParam().type == ElementType::kBf16 || GetParam().int8()) return;
  const double visible = 100 * tolerance().rms;
  EXPECT_GT(error_with({{10, 80, kArena}}, 81), visible) << "shifted position";
  EXPECT_GT(error_with({{10, 79, kArena}}, 80), visible) << "dropped last key";
  EXPECT_GT(error_with({{11, 80, kArena}}, 80), visible) << "shifted span";
  EXPECT_GT(error_with({{50, 40, kArena}, {10, 40, kArena}, {10, 1, kArena}}, 80), visible)
      << "a key twice";
}

INSTANTIATE_TEST_SUITE_P(Settings, ModelParity, testing::ValuesIn(Settings()),
                         [](const auto& parameter) {
                           std::string name(spec::TraitsOf(parameter.param.family).name);
                           name += parameter.param.type == ElementType::kF32 ? "_f32" : "_bf16";
                           if (parameter.param.isa) {
                             name += "_";
                             name += infer::cpu::SelectKernels(parameter.param.isa).name;
                           }
                           if (parameter.param.unit) {
                             name += "_";
                             name += infer::cpu::SelectBf16Kernels(parameter.param.unit).name;
                           }
                           return parameter.param.int8() ? name + "_int8" : name;
                         });

TEST(ModelParityShapes, Case52AllHeadsOf32Over8InThreeDocuments) {
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kQwen3);
  spec.layers = 2;
  spec.heads = 32;
  spec.kv_heads = 8;
  spec.head_dim = 16;
  const auto weights = infer::CreateRandomWeights(spec, 3);
  const ReferenceModel reference(spec, *weights);
  LoadedModel loaded(spec, *weights, {2, ElementType::kF32, {}});
  BatchBuilder builder;
  const std::vector<Tokens> documents = {MakeTokens(5, 1), MakeTokens(1, 2), MakeTokens(130, 3)};
  for (const Tokens& document : documents) builder.Add(document, {}, {});
  const LoadedModel::Result result = loaded.Run(builder.batch());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto wanted = ReferenceLogits(reference, documents[i]);
    EXPECT_LE(MeasureError<float>(result.row(i), wanted).largest, 1e-4) << i;
  }
}

struct RotationCase {
  std::int32_t head_dim;
  std::int32_t position;
};
class Rotation : public testing::TestWithParam<RotationCase> {};

// Keys and values as the arena holds them, element by element.
TEST_P(Rotation, Case56EveryLaneOfNormedAndRotatedKeys) {
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kQwen3);
  spec.layers = 1;
  spec.head_dim = GetParam().head_dim;
  spec.rope_theta = 1e6;
  const auto weights = infer::CreateRandomWeights(spec, 5);
  const ReferenceModel reference(spec, *weights);
  LoadedModel loaded(spec, *weights, {1, ElementType::kF32, {}});
  const Tokens tokens = MakeTokens(3, 1);
  BatchBuilder builder;
  builder.Add(tokens, {}, {.first_position = GetParam().position, .first_slot = 0});
  loaded.Run(builder.batch());
  const auto path = reference.Run(tokens, GetParam().position);
  std::vector<float> host(static_cast<std::size_t>(3 * 2 * spec.kv_width()));
  loaded.backend().CopyKvOut(0, 3, std::as_writable_bytes(std::span(host)));
  const float* value = host.data();
  for (std::size_t token = 0; token < 3; ++token) {
    for (std::int32_t head = 0; head < spec.kv_heads; ++head) {
      for (const auto* rows : {&path.keys[0][token], &path.values[0][token]}) {
        for (std::int32_t i = 0; i < spec.head_dim; ++i, ++value) {
          const double wanted = (*rows)[static_cast<std::size_t>(head * spec.head_dim + i)];
          // f32 frequencies: 2^-24 of an angle of up to 40,000.
          EXPECT_NEAR(*value, wanted, 1e-5 + 1e-7 * GetParam().position) << head << " " << i;
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(HeadsAndPositions, Rotation,
                         testing::Values(RotationCase{64, 0}, RotationCase{64, 1},
                                         RotationCase{64, 4095}, RotationCase{64, 40000},
                                         RotationCase{128, 0}, RotationCase{128, 1},
                                         RotationCase{128, 4095}, RotationCase{128, 40000}),
                         [](const auto& parameter) {
                           return "dim" + std::to_string(parameter.param.head_dim) + "_at" +
                                  std::to_string(parameter.param.position);
                         });

TEST(ModelParityShapes, ScaledRotaryFrequenciesEqualTheReference) {
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kLlama);
  spec.rope_theta = 500000.0;
  spec.rope_scaling = {8.0, 1.0, 4.0, 64};
  const auto weights = infer::CreateRandomWeights(spec, 3);
  const ReferenceModel reference(spec, *weights);
  LoadedModel loaded(spec, *weights, {1, ElementType::kF32, {}});
  const Tokens tokens = MakeTokens(150, 1);
  EXPECT_LE(MeasureError<float>(loaded.Alone(tokens), ReferenceLogits(reference, tokens)).largest,
            1e-4);
}

// One layer, so that the reference has to attend for the last rows alone: what 40,000 keys before
// them, in blocks, sum up to.
TEST(ModelParityShapes, AnswersBehindFortyThousandTokens) {
  constexpr std::int32_t kPrefix = 40000;
  constexpr std::int32_t kPiece = 5000;
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kQwen3);
  spec.layers = 1;
  spec.rope_theta = 1e6;
  const auto weights = infer::CreateRandomWeights(spec, 11);
  const ReferenceModel reference(spec, *weights);
  LoadedModel loaded(spec, *weights, {2, ElementType::kF32, {}}, kPrefix + 10);
  const Tokens prefix = MakeTokens(kPrefix, 1);
  for (std::int32_t begin = 0; begin < kPrefix; begin += kPiece) {
    BatchBuilder builder;
    builder.Add(std::span(prefix).subspan(static_cast<std::size_t>(begin), kPiece),
                {{0, begin, kArena}},
                {.first_position = begin, .first_slot = begin, .answer = false});
    loaded.Run(builder.batch());
  }
  const Tokens suffix = MakeTokens(3, 2);
  BatchBuilder builder;
  builder.Add(suffix, {{0, kPrefix, kArena}}, {.first_position = kPrefix});
  const auto path = reference.Run(Join({prefix, suffix}), 0, 1);
  std::vector<double> wanted;
  for (std::size_t i = 0; i < LoadedModel::kAnswers; ++i) {
    wanted.push_back(reference.Logit(path.normed.back(),
                                     LoadedModel::kFirstAnswer + static_cast<std::int32_t>(i)));
  }
  const ErrorShare error = MeasureError<float>(loaded.Run(builder.batch()).row(0), wanted);
  EXPECT_LE(error.largest, 1e-4);
  RecordProperty("largest", std::to_string(error.largest));
}

class NanParity : public testing::TestWithParam<ProductType> {};

TEST_P(NanParity, Case32NanInOneDocumentLeavesItsNeighboursBitEqual) {
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kQwen3);
  constexpr std::int32_t kPoison = 300;
  const PoisonedWeights weights(infer::CreateRandomWeights(spec, 3), kPoison);
  CpuOptions options{2, ElementType::kF32, {}};
  options.products = GetParam();
  LoadedModel loaded(spec, weights, options);
  const Tokens prefix = MakeTokens(70, 1, kPoison);
  const Tokens before = MakeTokens(20, 2, kPoison);
  const Tokens after = MakeTokens(33, 3, kPoison);
  Tokens poisoned = MakeTokens(25, 4, kPoison);
  poisoned[11] = kPoison;
  BatchBuilder builder;
  builder.Add(prefix, {}, {.answer = false});
  for (const Tokens& tokens : {before, poisoned, after}) {
    builder.Add(tokens, {{0, 70, kChunk}}, {.first_position = 70});
  }
  const LoadedModel::Result result = loaded.Run(builder.batch());
  EXPECT_EQ(result.row(0), loaded.Alone(Join({prefix, before})));
  EXPECT_TRUE(std::isnan(result.row(1).front()));
  EXPECT_EQ(result.row(2), loaded.Alone(Join({prefix, after})));
}

INSTANTIATE_TEST_SUITE_P(Products, NanParity,
                         testing::Values(ProductType::kElements, ProductType::kInt8),
                         [](const auto& parameter) {
                           return parameter.param == ProductType::kInt8 ? "int8" : "f32";
                         });

// A cancel is heeded between layers, within a second whatever the model's size: the larger a layer,
// the smaller the chunks.
TEST(ModelParityShapes, ChunksOfLargeModelsAreSmall) {
  const auto tokens = [](const char* shape, std::size_t threads) {
    const spec::ModelSpec& spec = spec::FindShape(shape)->spec;
    const auto backend = infer::cpu::CreateCpuBackend({threads, ElementType::kF32, {}});
    infer::BackendModel model{spec, {}};
    model.rope.inverse_frequencies.resize(static_cast<std::size_t>(spec.head_dim / 2));
    backend->Configure(model);
    return backend->info().preferred_chunk_tokens;
  };
  EXPECT_EQ(tokens("smollm2-135m", 2), 2048);
  EXPECT_GT(tokens("qwen3-0.6b", 2), 1000);
  EXPECT_GT(tokens("qwen3-4b-fp8", 2), 150);
  EXPECT_LT(tokens("qwen3-4b-fp8", 2), 250);
  EXPECT_EQ(tokens("qwen3-4b-fp8", 1), 128);
}

TEST(ModelParityShapes, HeadsWithoutRoomForAScaleAreRefusedByInt8) {
  if (infer::cpu::SelectInt8Attention() == nullptr) GTEST_SKIP() << "skipped: no AVX-512 VNNI here";
  CpuOptions options{1, ElementType::kBf16, {}};
  options.products = ProductType::kInt8;
  options.bf16 = &infer::cpu::Avx512Bf16Kernels();
  const auto backend = infer::cpu::CreateCpuBackend(options);
  spec::ModelSpec spec = TinySpec(spec::ModelFamily::kLlama);
  spec.head_dim = 2;
  EXPECT_THROW(backend->Configure({spec, {std::vector<float>(1)}}), Error);
}

TEST(ModelParityShapes, ACancelledPassSaysSo) {
  const spec::ModelSpec spec = TinySpec(spec::ModelFamily::kLlama);
  LoadedModel loaded(spec, *infer::CreateRandomWeights(spec, 3), {1, ElementType::kF32, {}});
  BatchBuilder builder;
  builder.Add(MakeTokens(5, 1), {}, {});
  base::CancelFlag cancel;
  cancel.Cancel();
  const auto chunk = loaded.backend().Begin(builder.batch());
  EXPECT_FALSE(loaded.model().Forward(loaded.backend(), *chunk, builder.batch(), &cancel));
}

}  // namespace
}  // namespace quail::parity
