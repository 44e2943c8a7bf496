#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "plan/logical.h"
#include "spec/roofline.h"
#include "spec/workload.h"

namespace quail::optimizer {

/// Tokens of constant prompt text; the session gives the model's tokenizer, without one a quarter
/// of the bytes counts.
using TokenCounter = std::function<double(std::string_view)>;
struct PromptTokens;
/// Token counts of a call whose prompt pieces are given as token ids; nullopt: they are text.
using PromptCounter = std::function<std::optional<PromptTokens>(const plan::Call&)>;

/// The texts of one side of a prompt: distinct tuples, and moments of their token counts.
struct TextSide {
  double count = 0;
  double mean = 0;
  double mean_square = 0;
};

/// Token counts of the constant pieces of one call's prompt (sql.md section 4).
struct PromptTokens {
  double preamble = 0;  ///< before a document
  double question = 0;  ///< of a filter, cue included
  double frame =
      0;           ///< of a join: note, instruction, question, the partner's label; once per anchor
  double cue = 0;  ///< behind a partner
};

/// Token counts of a chat layout's turns around every prompt that is text.
struct TurnTokens {
  double before = 0;
  double after = 0;
};

/// Prices work. All functions are pure.
class CostModel {
 public:
  CostModel(const spec::ModelSpec& model, const spec::DeviceSpec& device, TokenCounter count_tokens,
            PromptCounter prompt_tokens = {}, TurnTokens turns = {});

  PromptTokens PromptOf(const plan::Call& call) const;

  /// The document of a filter or the anchor of a join, computed.
  spec::Workload Document(const TextSide& side, const PromptTokens& prompt) const;
  /// A filter's question behind a document whose KV is held.
  spec::Workload FilterAsk(const TextSide& side, const PromptTokens& prompt) const;
  /// A whole join: every anchor once, its frame, then `pairs` partners in all.
  spec::Workload Join(const TextSide& anchor, const TextSide& partner, double pairs,
                      const PromptTokens& prompt) const;

  /// Roofline seconds with fractional passes, for comparing orders.
  double Seconds(spec::Workload work) const;
  /// Roofline seconds of a step that runs by itself: at least one pass.
  double StepSeconds(spec::Workload work) const;
  double PredictedStepSeconds(spec::Workload work, double asks) const;

 private:
  spec::Workload WithPasses(spec::Workload work, double least) const;

  const spec::ModelSpec& model_;
  const spec::DeviceSpec& device_;
  TokenCounter count_tokens_;
  PromptCounter prompt_tokens_;
  TurnTokens turns_;
};

}  // namespace quail::optimizer
