// Host cost of an AI step: operator, verdict table, evaluator and prompt forest, over the counting
// backend, which does no arithmetic.
//
// usage: ask_benchmark DOCUMENTS [FILTERS [CHUNK_TOKENS KV_TOKENS]]
//   Documents of 300 tokens, each asked by a step of FILTERS (1) predicates with questions of some
//   50 tokens; a predicate lets half of them survive.
// Prints asks, processor seconds, microseconds an ask and the peak memory above what the texts
// take.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "exec/model_evaluator.h"
#include "exec/operators/ask_filter.h"
#include "infer/counting/counting_backend.h"
#include "process_usage.h"

namespace {

using quail::bench::PeakMegabytes;
using quail::bench::ProcessorSeconds;
using namespace quail;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kDocumentTokens = 300;

/// Every byte is a token.
std::shared_ptr<const text::BpeTokenizer> ByteTokenizer() {
  text::BpeVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  vocabulary.is_control.assign(256, false);
  return text::BpeTokenizer::Create(std::move(vocabulary));
}

exec::Domain MakeDocuments(text::TextStore& texts, std::size_t count) {
  exec::Domain domain{1, {}, {}};
  std::vector<base::TokenId> tokens(kDocumentTokens);
  std::uint64_t state = count;
  for (std::size_t i = 0; i < count; ++i) {
    for (base::TokenId& token : tokens) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      token = base::TokenId(static_cast<std::int32_t>((state >> 33) % 150000));
    }
    domain.ids.push_back(texts.InternTokens(tokens));
    domain.weights.push_back(1);
  }
  return domain;
}

plan::PhysicalPlan MakePlan(std::size_t filters) {
  plan::PhysicalPlan plan;
  for (std::size_t i = 0; i < filters; ++i) {
    plan::Call call;
    call.id = plan::CallId(static_cast<std::uint32_t>(i));
    call.prompt = fmt::format("Is this document about the subject number {}? {{0}}", i);
    call.arguments.push_back({plan::RelationId(0), "id", "text"});
    plan.calls.push_back(std::move(call));
  }
  return plan;
}

int Measure(int argc, char** argv) {
  const auto documents = static_cast<std::size_t>(std::strtoull(argv[1], nullptr, 10));
  const std::size_t filters = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  infer::ForestConfig config;
  config.chunk_tokens = argc > 3 ? std::atoi(argv[3]) : 32768;
  config.kv_tokens = argc > 4 ? std::atoll(argv[4]) : 362250;
  config.context_tokens = 40960;
  config.true_rows = 1;
  config.answer_rows = 2;

  text::TextStore texts;
  exec::Domain domain = MakeDocuments(texts, documents);
  const auto tokenizer = ByteTokenizer();
  base::ThreadPool pool(1);
  infer::CountingBackend backend({});
  const infer::CountingModel model{spec::ModelSpec{}};
  backend.ReserveKv({}, config.kv_tokens);
  const auto forest = infer::PromptForest::Create(model, backend, config);
  exec::ModelEvaluator evaluator(exec::ModelParts{.forest = *forest,
                                                  .tokenizer = tokenizer.get(),
                                                  .texts = texts,
                                                  .pool = pool,
                                                  .words = {"TRUE", "FALSE"},
                                                  .vocabulary = 1 << 20});
  const plan::PhysicalPlan plan = MakePlan(filters);

  const double texts_megabytes = PeakMegabytes();
  const double start = ProcessorSeconds();
  exec::StatementVerdicts verdicts(plan);
  evaluator.Begin();
  std::vector<exec::QuestionId> questions;
  exec::AskFilter::Options options;
  for (std::size_t i = 0; i < filters; ++i) {
    questions.push_back(evaluator.Add(verdicts.question(i)));
    options.stages.push_back({plan::CallId(static_cast<std::uint32_t>(i)), false, {0}});
  }
  exec::AskFilter step({verdicts, evaluator, questions}, std::move(domain), std::move(options));
  std::vector<exec::Outcome> outcomes;
  for (step.Feed(); evaluator.Next(outcomes, nullptr); step.Feed()) {
    for (const exec::Outcome& outcome : outcomes) step.Take(outcome);
    outcomes.clear();
  }
  const double seconds = ProcessorSeconds() - start;
  const auto asks = static_cast<double>(step.counters().distinct);
  std::printf("asks %.0f  processor seconds %.3f  us/ask %.3f\n", asks, seconds,
              seconds * 1e6 / asks);
  std::printf("rows out %llu  fresh %llu  minimum %llu  chunks %llu\n",
              static_cast<unsigned long long>(step.counters().rows_out),
              static_cast<unsigned long long>(forest->counters().steps[0].fresh_tokens),
              static_cast<unsigned long long>(forest->counters().minimum_tokens),
              static_cast<unsigned long long>(forest->counters().chunks));
  std::printf("MB: texts %.0f, peak +%.0f (%.0f bytes a document)\n", texts_megabytes,
              PeakMegabytes() - texts_megabytes,
              (PeakMegabytes() - texts_megabytes) * 1048576 / static_cast<double>(documents));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DOCUMENTS [FILTERS [CHUNK_TOKENS KV_TOKENS]]\n", argv[0]);
    return 2;
  }
  try {
    return Measure(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
