// Whole queries' worth of asks through the prompt forest on the GPU, at Qwen3-4B block-fp8 shapes
// with made-up weights and ids: scheduler, packer, KV and kernels together, without the relational
// side.
//   filter: QUAIL-B's IMDB-1 (5,000 documents of lognormal length, 1,494,232 tokens in all, one
//   question) join:   BIO-2 (500 reports, 2,031,845 tokens, each with the same 1,127 terms)
// Repeats each until 20 s have passed; writes JSON lines to the file named by the first argument. A
// second argument leaves only the shape whose name it is.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/fp8_block_weights.h"
#include "infer/weights/random_weights.h"
#include "list_source.h"
#include "power_json.h"
#include "quail/error.h"
#include "spec/known_shapes.h"

namespace {

using quail::bench::ListSource;
using namespace quail::infer;  // NOLINT(google-build-using-namespace)
using Texts = std::vector<std::vector<TokenId>>;

constexpr double kSeconds = 20;
constexpr std::int64_t kKeptBytes = std::int64_t{4} << 30;

/// Lengths of lognormal spread in [least, most], scaled to the sum `total`.
struct Lengths {
  std::size_t count;
  double total;
  double sigma;
  double least;
  double most;
};

std::vector<std::size_t> DrawLengths(const Lengths& lengths, std::mt19937& random) {
  std::lognormal_distribution<double> normal(0, lengths.sigma);
  std::vector<double> raw(lengths.count);
  for (double& length : raw) length = normal(random);
  double factor = lengths.total / static_cast<double>(lengths.count);
  const auto scaled = [&](double length) {
    return std::round(std::clamp(length * factor, lengths.least, lengths.most));
  };
  for (int i = 0; i < 50; ++i) {
    double sum = 0;
    for (const double length : raw) sum += scaled(length);
    factor *= lengths.total / sum;
  }
  std::vector<std::size_t> result;
  for (const double length : raw) result.push_back(static_cast<std::size_t>(scaled(length)));
  return result;
}

Texts MakeTexts(const std::vector<std::size_t>& lengths, std::size_t added, std::mt19937& random) {
  Texts texts(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::size_t t = 0; t < lengths[i] + added; ++t) {
      texts[i].emplace_back(static_cast<std::int32_t>(random() % 150'000));
    }
  }
  return texts;
}

/// Parents below one preamble, and the leaves that each of them is asked with.
struct Shape {
  std::string name;
  Texts preamble;
  Texts parents;
  Texts leaves;
};

Shape Filter(std::mt19937& random) {
  return {"filter", MakeTexts({2}, 0, random),
          MakeTexts(DrawLengths({5000, 1'494'232, 0.72, 12, 3000}, random), 0, random),
          MakeTexts({51}, 0, random)};
}

/// A report's frame, and the label that opens every partner, are computed with the report; a
/// partner is its term and the answer cue.
Shape Join(std::mt19937& random) {
  constexpr std::size_t kFrameAndLabel = 38, kCue = 4;
  return {
      "join", MakeTexts({2}, 0, random),
      MakeTexts(DrawLengths({500, 2'031'845, 0.7, 100, 24'000}, random), kFrameAndLabel, random),
      MakeTexts(DrawLengths({1127, 5'371, 0.5, 1, 16}, random), kCue, random)};
}

struct Totals {
  double seconds = 0;
  std::uint64_t passes = 0;
  std::uint64_t asks = 0;
  std::uint64_t fresh = 0;
  std::uint64_t minimum = 0;
  std::uint64_t requested = 0;
  std::uint64_t chunks = 0;
  double model_seconds = 0;
};

void RunOnce(PromptForest& forest, const Shape& shape, Totals& totals) {
  forest.Clear();
  forest.ResetCounters();
  const quail::base::Stopwatch watch;
  const NodeId preamble = forest.Child(forest.root(), forest.Segment(shape.preamble[0]));
  for (const auto& parent : shape.parents) {
    forest.Add(forest.Child(preamble, forest.Segment(parent)),
               std::make_unique<ListSource>(shape.leaves), {});
  }
  std::vector<Answer> answers;
  while (forest.Next(answers, nullptr)) {
    totals.asks += answers.size();
    answers.clear();
  }
  const ForestCounters& counters = forest.counters();
  totals.seconds += watch.seconds();
  ++totals.passes;
  totals.fresh += counters.steps[0].fresh_tokens;
  totals.requested += counters.steps[0].requested_tokens;
  totals.minimum += counters.minimum_tokens;
  totals.chunks += counters.chunks;
  totals.model_seconds += counters.model_seconds;
}

std::string Measure(PromptForest& forest, Backend& backend, const Shape& shape) {
  Totals totals;
  const DeviceUsage before = backend.usage().value_or(DeviceUsage{});
  while (totals.seconds < kSeconds) RunOnce(forest, shape, totals);
  const DeviceUsage after = backend.usage().value_or(DeviceUsage{});
  const auto passes = static_cast<double>(totals.passes);
  return fmt::format(
      R"({{"name": "{}", "passes": {}, "seconds_a_pass": {:.3f}, "fresh_tokens_per_s": {:.0f}, )"
      R"("requested_tokens_per_s": {:.0f}, "asks_a_pass": {:.0f}, "fresh_a_pass": {:.0f}, )"
      R"("minimum_a_pass": {:.0f}, "chunks_a_pass": {:.0f}, "model_seconds_a_pass": {:.3f}, )"
      R"("power": {}}})",
      shape.name, totals.passes, totals.seconds / passes,
      static_cast<double>(totals.fresh) / totals.seconds,
      static_cast<double>(totals.requested) / totals.seconds,
      static_cast<double>(totals.asks) / passes, static_cast<double>(totals.fresh) / passes,
      static_cast<double>(totals.minimum) / passes, static_cast<double>(totals.chunks) / passes,
      totals.model_seconds / passes, PowerJson(before, after, totals.fresh));
}

void MeasureAll(const char* path, const std::string& only) {
  const quail::spec::ModelSpec spec = quail::spec::FindShape("qwen3-4b-fp8")->spec;
  const auto backend = quail::infer::cuda::CreateCudaBackend({});
  const auto weights = QuantizeToFp8Blocks(CreateRandomWeights(spec, 1));
  const auto model = LoadModel({spec, {20611, 8214, 30351, 7833}, false}, *weights, *backend);
  const std::int64_t slot_bytes = std::int64_t{4} * spec.layers * spec.kv_width();
  ForestConfig config;
  config.kv_tokens = (backend->info().free_memory_bytes - kKeptBytes) / slot_bytes;
  config.chunk_tokens = backend->info().preferred_chunk_tokens;
  config.context_tokens = spec.context;
  config.true_rows = 2;
  config.answer_rows = 4;
  backend->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, config.kv_tokens);
  const auto forest = PromptForest::Create(*model, *backend, config);
  std::mt19937 random(5);
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  for (const Shape& shape : {Filter(random), Join(random)}) {
    if (!only.empty() && shape.name != only) continue;
    const std::string line = Measure(*forest, *backend, shape);
    fmt::print("{}\n", line);
    std::fflush(stdout);
    if (file != nullptr) fmt::print(file, "{}\n", line);
  }
  if (file != nullptr) std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    MeasureAll(argc > 1 ? argv[1] : nullptr, argc > 2 ? argv[2] : "");
  } catch (const quail::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  }
  return 0;
}
