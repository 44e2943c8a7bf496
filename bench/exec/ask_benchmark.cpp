// Host cost of an AI step: operator, verdict table, evaluator and prompt forest, over the counting
// backend, which does no arithmetic.
//
// usage: ask_benchmark filter DOCUMENTS [FILTERS [CHUNK_TOKENS KV_TOKENS]]
//        ask_benchmark join ANCHORS PARTNERS [CHUNK_TOKENS KV_TOKENS]
//   filter: documents of 300 tokens, each asked by a step of FILTERS (1) predicates with questions
//   of some 50 tokens; all of them survive. join: anchors of 400 tokens, each
//   with all partners of 15.
// Prints asks, processor seconds, microseconds an ask, how full the chunks are and the peak memory
// above what the texts take.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/model_evaluator.h"
#include "exec/operators/ask_filter.h"
#include "exec/operators/ask_join.h"
#include "infer/counting/counting_backend.h"
#include "process_usage.h"

namespace {

using quail::bench::PeakMegabytes;
using quail::bench::ProcessorSeconds;
using namespace quail;  // NOLINT(google-build-using-namespace)

/// Every byte is a token.
std::shared_ptr<const text::BpeTokenizer> ByteTokenizer() {
  text::BpeVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  vocabulary.is_control.assign(256, false);
  return text::BpeTokenizer::Create(std::move(vocabulary));
}

exec::Domain MakeTexts(text::TextStore& texts, std::size_t count, std::size_t length) {
  exec::Domain domain{1, {}, {}};
  std::vector<base::TokenId> tokens(length);
  std::uint64_t state = count * 977 + length;
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

plan::PhysicalPlan FilterPlan(std::size_t filters) {
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

plan::PhysicalPlan JoinPlan() {
  plan::PhysicalPlan plan;
  plan::Call call;
  call.prompt = "Do {0} and {1} belong together?";
  call.arguments = {{plan::RelationId(0), "a", "text"}, {plan::RelationId(1), "b", "text"}};
  plan.calls.push_back(std::move(call));
  plan::AskJoinStep step;
  step.anchor = plan::RelationId(0);
  step.partner = plan::RelationId(1);
  step.stages = {{plan::CallId(0), false}};
  plan.steps.emplace_back(std::move(step));
  return plan;
}

infer::ForestConfig ConfigOf(int argc, char** argv) {
  infer::ForestConfig config;
  config.chunk_tokens = argc > 4 ? std::atoi(argv[4]) : 32768;
  config.kv_tokens = argc > 5 ? std::atoll(argv[5]) : 362250;
  config.context_tokens = 40960;
  config.true_rows = 1;
  config.answer_rows = 2;
  return config;
}

std::unique_ptr<exec::StepRun> FilterStep(const exec::StepContext& context, exec::Domain documents,
                                          std::size_t filters) {
  exec::AskFilter::Options options;
  for (std::size_t i = 0; i < filters; ++i) {
    options.stages.push_back({plan::CallId(static_cast<std::uint32_t>(i)), false, {0}});
  }
  return std::make_unique<exec::AskFilter>(context, std::move(documents), std::move(options));
}

std::unique_ptr<exec::StepRun> JoinStep(const exec::StepContext& context, exec::Domain anchors,
                                        exec::Domain partners) {
  exec::AskJoin::Options options;
  options.stages.push_back({plan::CallId(0), false, {0, 1}});
  return std::make_unique<exec::AskJoin>(
      context, exec::PairDomain::Cross(std::move(anchors), std::move(partners)),
      std::move(options));
}

void PrintChunks(const infer::ForestCounters& counters, std::int32_t chunk_tokens) {
  std::vector<std::int32_t> sizes = counters.chunk_sizes;
  std::ranges::sort(sizes);
  std::printf("fresh %llu  minimum %llu  chunks %llu, their median %.1f %% full\n",
              static_cast<unsigned long long>(counters.steps[0].fresh_tokens),
              static_cast<unsigned long long>(counters.minimum_tokens),
              static_cast<unsigned long long>(counters.chunks),
              100.0 * sizes[sizes.size() / 2] / chunk_tokens);
}

int Measure(int argc, char** argv) {
  const bool join = std::strcmp(argv[1], "join") == 0;
  const std::size_t count = std::strtoull(argv[2], nullptr, 10);
  const std::size_t other = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const infer::ForestConfig config = ConfigOf(argc, argv);
  text::TextStore texts;
  exec::Domain domain = MakeTexts(texts, count, join ? 400 : 300);
  exec::Domain partners = MakeTexts(texts, join ? other : 0, 15);
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
  const plan::PhysicalPlan plan = join ? JoinPlan() : FilterPlan(other);

  const double texts_megabytes = PeakMegabytes();
  const double start = ProcessorSeconds();
  exec::StatementVerdicts verdicts(plan);
  evaluator.Begin();
  std::vector<exec::QuestionId> questions;
  for (std::size_t i = 0; i < verdicts.questions(); ++i) {
    questions.push_back(evaluator.Add(verdicts.question(i)));
  }
  const exec::StepContext context{verdicts, evaluator, questions};
  const std::unique_ptr<exec::StepRun> step =
      join ? JoinStep(context, std::move(domain), std::move(partners))
           : FilterStep(context, std::move(domain), other);
  std::vector<exec::Outcome> outcomes;
  for (step->Feed(); evaluator.Next(outcomes, nullptr); step->Feed()) {
    for (const exec::Outcome& outcome : outcomes) step->Take(outcome);
    outcomes.clear();
  }
  const double seconds = ProcessorSeconds() - start;
  const auto asks = static_cast<double>(step->counters().distinct);
  const double megabytes = PeakMegabytes() - texts_megabytes;
  std::printf("asks %.0f (%llu errors), rows out %llu  processor seconds %.3f  us/ask %.3f\n", asks,
              static_cast<unsigned long long>(step->counters().error),
              static_cast<unsigned long long>(step->counters().rows_out), seconds,
              seconds * 1e6 / asks);
  PrintChunks(forest->counters(), config.chunk_tokens);
  std::printf("MB: texts %.0f, peak +%.1f (%.1f bytes %s, %.2f an ask)\n", texts_megabytes,
              megabytes, megabytes * 1048576 / static_cast<double>(count),
              join ? "an anchor" : "a document", megabytes * 1048576 / asks);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: %s filter DOCUMENTS [FILTERS [CHUNK KV]] | join ANCHORS PARTNERS [CHUNK "
                 "KV]\n",
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
