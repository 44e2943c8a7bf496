// Host cost of the prompt forest: scheduling, packing and reading answers over the counting
// backend, which does no arithmetic.
//
// usage: forest_benchmark join ANCHORS PARTNERS | filter DOCUMENTS QUESTIONS [CHUNK_TOKENS
// KV_TOKENS]
//   join: anchors of 400 tokens, one list of partners of 15 tokens for all of them (10000 10000:
//   10^8 asks). filter: documents of 300 tokens, a source of questions of 50 tokens that begin
//   alike for each.
// Prints asks, seconds, microseconds an ask, tokens, chunks and the peak memory above what the
// texts take.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "infer/counting/counting_backend.h"
#include "infer/prompt_forest.h"
#include "list_source.h"
#include "process_usage.h"

namespace {

using quail::bench::ListSource;
using quail::bench::PeakMegabytes;
using quail::bench::ProcessorSeconds;
using namespace quail::infer;  // NOLINT(google-build-using-namespace)
using Texts = std::vector<std::vector<TokenId>>;

Texts MakeTexts(std::size_t count, std::size_t length, std::size_t common) {
  Texts texts(count);
  std::uint64_t state = count * 977 + length;
  for (std::size_t t = 0; t < count; ++t) {
    for (std::size_t i = 0; i < length; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      texts[t].emplace_back(i < common ? static_cast<std::int32_t>(i)
                                       : static_cast<std::int32_t>((state >> 33) % 150000));
    }
  }
  return texts;
}

/// Seconds of processor time, which other work on the machine does not stretch.
int Measure(int argc, char** argv) {
  const bool join = std::strcmp(argv[1], "join") == 0;
  const auto parents = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  const auto leaves = static_cast<std::size_t>(std::strtoull(argv[3], nullptr, 10));
  ForestConfig config;
  config.chunk_tokens = argc > 4 ? std::atoi(argv[4]) : 32768;
  config.kv_tokens = argc > 5 ? std::atoll(argv[5]) : 362250;
  config.context_tokens = 40960;
  config.true_rows = 1;
  config.answer_rows = 2;
  const Texts parent_texts = MakeTexts(parents, join ? 400 : 300, 0);
  const Texts leaf_texts = MakeTexts(leaves, join ? 15 : 50, join ? 0 : 18);
  const double texts_megabytes = PeakMegabytes();

  CountingBackend backend({});
  const CountingModel model{quail::spec::ModelSpec{}};
  backend.ReserveKv({}, config.kv_tokens);
  const auto forest = PromptForest::Create(model, backend, config);
  const double start = ProcessorSeconds();
  for (const auto& text : parent_texts) {
    const NodeId node = forest->Child(forest->root(), forest->Segment(text));
    forest->Add(node, std::make_unique<ListSource>(leaf_texts), {});
  }
  const double added = ProcessorSeconds() - start;
  const double added_megabytes = PeakMegabytes();
  std::vector<Answer> answers;
  std::uint64_t count = 0;
  double sum = 0;
  while (forest->Next(answers, nullptr)) {
    count += answers.size();
    for (const Answer& answer : answers) sum += static_cast<double>(answer.value);
    answers.clear();
  }
  const double seconds = ProcessorSeconds() - start;
  const ForestCounters& counters = forest->counters();
  std::printf("asks %llu  processor seconds %.3f (adding %.3f)  us/ask %.3f\n",
              static_cast<unsigned long long>(count), seconds, added,
              seconds * 1e6 / static_cast<double>(count));
  std::printf(
      "fresh %llu  minimum %llu  requested %llu  chunks %llu  evictions %llu  kv peak %lld\n",
      static_cast<unsigned long long>(counters.steps[0].fresh_tokens),
      static_cast<unsigned long long>(counters.minimum_tokens),
      static_cast<unsigned long long>(counters.steps[0].requested_tokens),
      static_cast<unsigned long long>(counters.chunks),
      static_cast<unsigned long long>(counters.evictions),
      static_cast<long long>(counters.kv_peak_tokens));
  std::printf(
      "MB: texts %.0f, sources added +%.0f (%.0f bytes a source), peak +%.0f; mean answer %.3f\n",
      texts_megabytes, added_megabytes - texts_megabytes,
      (added_megabytes - texts_megabytes) * 1048576 / static_cast<double>(parents),
      PeakMegabytes() - texts_megabytes, sum / static_cast<double>(count));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: %s join ANCHORS PARTNERS | filter DOCUMENTS QUESTIONS [CHUNK KV]\n",
                 argv[0]);
    return 2;
  }
  try {
    return Measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
