// A join through the prompt forest on the CPU backend, and some of its pairs asked alone.
//
// usage: join_benchmark MODEL.gguf [ANCHORS PARTNERS SAMPLE [THREADS]]
//   50 anchors of 2,000 tokens x 200 partners of 10 tokens, and 50 of the pairs alone, by default.
// Prints tokens, and seconds a pair of both in wall and in processor time (a busy machine stretches
// only the first), and how many of the sampled verdicts differ.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/model.h"
#include "infer/prompt_forest.h"
#include "infer/weights/gguf_weights.h"
#include "list_source.h"
#include "process_usage.h"

namespace {

using quail::bench::ListSource;
using quail::bench::ProcessorSeconds;
using namespace quail::infer;  // NOLINT(google-build-using-namespace)
using Tokens = std::vector<TokenId>;

constexpr std::size_t kAnchorTokens = 2000;
constexpr std::size_t kPartnerTokens = 10;

std::vector<Tokens> MakeTexts(std::size_t count, std::size_t length, std::uint64_t seed) {
  std::vector<Tokens> texts(count);
  for (Tokens& text : texts) {
    for (std::size_t i = 0; i < length; ++i) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      text.emplace_back(static_cast<std::int32_t>((seed >> 33) % 49000));
    }
  }
  return texts;
}

struct Outcome {
  std::map<std::pair<std::size_t, std::uint64_t>, float> margins;  ///< by anchor and partner
  double wall = 0;
  double processor = 0;
};

/// Asks `partners` of each of the anchors.
Outcome Ask(PromptForest& forest, const std::vector<Tokens>& anchors,
            std::span<const Tokens> partners) {
  const quail::base::Stopwatch watch;
  const double before = ProcessorSeconds();
  Outcome outcome;
  std::map<SourceId, std::size_t> anchor_of;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    const NodeId node = forest.Child(forest.root(), forest.Segment(anchors[i]));
    anchor_of[forest.Add(node, std::make_unique<ListSource>(partners), {})] = i;
  }
  std::vector<Answer> answers;
  while (forest.Next(answers, nullptr)) {
    for (const Answer& answer : answers) {
      outcome.margins[{anchor_of.at(answer.source), answer.index}] = answer.value;
    }
    answers.clear();
  }
  outcome.wall = watch.seconds();
  outcome.processor = ProcessorSeconds() - before;
  return outcome;
}

void Measure(int argc, char** argv) {
  const auto number = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)) : otherwise;
  };
  const std::size_t sample = number(4, 50);
  const std::vector<Tokens> anchors = MakeTexts(number(2, 50), kAnchorTokens, 1);
  const std::vector<Tokens> partners = MakeTexts(number(3, 200), kPartnerTokens, 2);

  const auto file = quail::spec::GgufFile::Open(argv[1]);
  const quail::spec::ModelSpec spec = quail::spec::ReadModelSpec(*file);
  cpu::CpuOptions options;
  options.threads = number(5, 2);
  const auto backend = cpu::CreateCpuBackend(options);
  const auto model =
      LoadModel({spec, {10, 20, 30, 40}, false}, *OpenGgufWeights(file, spec), *backend);
  ForestConfig config;
  config.chunk_tokens = backend->info().preferred_chunk_tokens;
  config.kv_tokens = 4 * std::int64_t{config.chunk_tokens};
  config.context_tokens = spec.context;
  config.true_rows = 2;
  config.answer_rows = 4;
  backend->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, config.kv_tokens);
  const auto forest = PromptForest::Create(*model, *backend, config);
  std::printf("%s, %s, %d threads\n", argv[1], backend->info().device.c_str(),
              backend->info().threads);

  const Outcome joined = Ask(*forest, anchors, partners);
  const auto pairs = static_cast<double>(joined.margins.size());
  std::printf(
      "join   %zu x %zu: fresh %llu, minimum %llu tokens; %.4f s of wall, %.4f s of "
      "processor time a pair\n",
      anchors.size(), partners.size(),
      static_cast<unsigned long long>(forest->counters().steps[0].fresh_tokens),
      static_cast<unsigned long long>(forest->counters().minimum_tokens), joined.wall / pairs,
      joined.processor / pairs);

  Outcome alone;
  std::size_t flips = 0;
  double largest = 0;
  for (std::size_t i = 0; i < sample; ++i) {
    const std::size_t anchor = i * 7 % anchors.size();
    const std::size_t partner = i * 13 % partners.size();
    forest->Clear();
    const Outcome one = Ask(*forest, {anchors[anchor]}, std::span(partners).subspan(partner, 1));
    alone.wall += one.wall;
    alone.processor += one.processor;
    const float apart = one.margins.begin()->second;
    const float together = joined.margins.at({anchor, partner});
    flips += (apart > 0) != (together > 0) ? 1U : 0U;
    largest = std::max(largest, static_cast<double>(std::abs(apart - together)));
  }
  const auto asked = static_cast<double>(sample);
  std::printf("alone  %zu pairs: %.3f s of wall, %.3f s of processor time a pair\n", sample,
              alone.wall / asked, alone.processor / asked);
  std::printf(
      "join is %.1f times as fast by wall, %.1f by processor time; %zu verdicts differ, "
      "margins by %g at most\n",
      alone.wall / asked / (joined.wall / pairs),
      alone.processor / asked / (joined.processor / pairs), flips, largest);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: join_benchmark MODEL.gguf [ANCHORS PARTNERS SAMPLE [THREADS]]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    Measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
