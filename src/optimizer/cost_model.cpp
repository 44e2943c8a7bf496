#include "optimizer/cost_model.h"

#include <algorithm>

namespace quail::optimizer {

using spec::Workload;

namespace {

/// The layout's own words, so that lengths are those of real prompts.
constexpr std::string_view kPreamble = "DOCUMENT:\n";
constexpr std::string_view kInstruction = "\nEvaluate TRUE or FALSE for the following question:\n";
constexpr std::string_view kNote = "\n(The document above is DOCUMENT {0}.)";
constexpr std::string_view kLabel = "\nDOCUMENT {1}:\n";
constexpr std::string_view kCue = "\nANSWER:";

double Triangle(double mean, double mean_square) { return (mean_square + mean) / 2; }

/// Moments of a text behind `extra` constant tokens.
TextSide Shifted(const TextSide& side, double extra) {
  return {side.count, side.mean + extra, side.mean_square + 2 * extra * side.mean + extra * extra};
}

}  // namespace

CostModel::CostModel(const spec::ModelSpec& model, const spec::DeviceSpec& device,
                     TokenCounter count_tokens, PromptCounter prompt_tokens, TurnTokens turns)
    : model_(model),
      device_(device),
      count_tokens_(std::move(count_tokens)),
      prompt_tokens_(std::move(prompt_tokens)),
      turns_(turns) {
  if (!count_tokens_) {
    count_tokens_ = [](std::string_view text) { return static_cast<double>(text.size()) / 4; };
  }
}

PromptTokens CostModel::PromptOf(const plan::Call& call) const {
  if (prompt_tokens_) {
    if (const auto given = prompt_tokens_(call)) return *given;
  }
  const double question = count_tokens_(call.prompt);
  PromptTokens prompt;
  prompt.preamble = turns_.before + count_tokens_(kPreamble);
  prompt.cue = count_tokens_(kCue) + turns_.after;
  prompt.question = count_tokens_(kInstruction) + question + prompt.cue;
  prompt.frame =
      count_tokens_(kNote) + count_tokens_(kInstruction) + question + count_tokens_(kLabel);
  return prompt;
}

Workload CostModel::Document(const TextSide& side, const PromptTokens& prompt) const {
  const TextSide path = Shifted(side, prompt.preamble);
  Workload work;
  work.tokens = path.count * path.mean;
  work.attention_pairs = path.count * Triangle(path.mean, path.mean_square);
  work.kv_written = work.tokens;
  return work;
}

Workload CostModel::FilterAsk(const TextSide& side, const PromptTokens& prompt) const {
  const TextSide path = Shifted(side, prompt.preamble);
  const double u = prompt.question;
  Workload work;
  work.tokens = path.count * u;
  work.attention_pairs = path.count * (u * path.mean + Triangle(u, u * u));
  work.kv_read = path.count * path.mean;
  return work;
}

Workload CostModel::Join(const TextSide& anchor, const TextSide& partner, double pairs,
                         const PromptTokens& prompt) const {
  Workload work = Document(anchor, prompt);
  const double path = anchor.mean + prompt.preamble;
  Workload frame;
  frame.tokens = anchor.count * prompt.frame;
  frame.attention_pairs =
      anchor.count * (prompt.frame * path + Triangle(prompt.frame, prompt.frame * prompt.frame));
  frame.kv_written = frame.tokens;
  frame.kv_read = anchor.count * path;
  const TextSide suffix = Shifted(partner, prompt.cue);
  Workload asks;
  asks.tokens = pairs * suffix.mean;
  asks.attention_pairs =
      pairs * (suffix.mean * (path + prompt.frame) + Triangle(suffix.mean, suffix.mean_square));
  asks.kv_read = anchor.count * (path + prompt.frame);
  work += frame;
  work += asks;
  return work;
}

Workload CostModel::WithPasses(Workload work, double least) const {
  work.passes = std::max(least, work.tokens / spec::MaxChunkTokens(model_));
  return work;
}

double CostModel::Seconds(Workload work) const {
  return spec::RooflineSeconds(WithPasses(work, 0), model_, device_);
}

double CostModel::StepSeconds(Workload work) const {
  return spec::RooflineSeconds(WithPasses(work, work.tokens > 0 ? 1 : 0), model_, device_);
}

double CostModel::PredictedStepSeconds(Workload work, double asks) const {
  return spec::PredictedSeconds(WithPasses(work, work.tokens > 0 ? 1 : 0), asks, model_, device_);
}

}  // namespace quail::optimizer
