#include "session/token_prompts_check.h"

#include <fmt/format.h>

namespace quail::session {
namespace {

void CheckHasTokens(const plan::Call& call, const exec::TokenPrompts::Pieces* pieces,
                    const ModelHost& model) {
  const bool counted = call.kind == plan::CallKind::kCountTokens;
  if (pieces == nullptr && !counted) {
    throw Error(ErrorCode::kModel,
                fmt::format("the model {} has no tokenizer, and no token ids are given for this "
                            "prompt",
                            model.spec().name),
                call.position);
  }
  for (const plan::Argument& argument : call.arguments) {
    if (argument.tokens) continue;
    throw Error(ErrorCode::kModel,
                fmt::format("the model {} has no tokenizer: {} must be a TOKENS column",
                            model.spec().name, argument.sql),
                call.position);
  }
}

}  // namespace

void CheckTokenPrompts(const plan::LogicalPlan& plan, const ModelHost& model) {
  for (const plan::Call& call : plan.calls) {
    const exec::TokenPrompts::Pieces* pieces = model.token_prompts().Find(call.prompt);
    if (model.tokenizer() == nullptr) CheckHasTokens(call, pieces, model);
    if (pieces == nullptr || call.arguments.size() != 2) continue;
    if (call.arguments[0].relation == call.arguments[1].relation) {
      throw Error(
          ErrorCode::kUnsupported,
          "a prompt whose pieces are token ids asks about two tables, not about two columns "
          "of one",
          call.position);
    }
  }
}

void CountTokensWith(const ModelHost& model, optimizer::OptimizerOptions& options) {
  if (const text::BpeTokenizer* tokenizer = model.tokenizer()) {
    options.count_tokens = [tokenizer](std::string_view text) {
      std::vector<base::TokenId> tokens;
      tokenizer->Encode(text, tokens);
      return static_cast<double>(tokens.size());
    };
  }
  if (const text::ChatPieces* chat = model.chat()) {
    options.turns = {static_cast<double>(chat->before.size()),
                     static_cast<double>(chat->after.size())};
  }
  options.prompt_tokens =
      [&model](const plan::Call& call) -> std::optional<optimizer::PromptTokens> {
    const auto* pieces = model.token_prompts().Find(call.prompt);
    if (pieces == nullptr) return std::nullopt;
    optimizer::PromptTokens tokens;
    tokens.preamble = static_cast<double>(pieces->head.size() + pieces->tail.size());
    tokens.question = static_cast<double>(pieces->question.size());
    tokens.frame = tokens.question;
    tokens.cue = static_cast<double>(pieces->partner_head.size() + pieces->partner_tail.size());
    return tokens;
  };
}

}  // namespace quail::session
