#include "exec/token_prompts.h"

#include <fmt/format.h>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

std::vector<base::TokenId> Tokens(std::span<const std::int32_t> ids) {
  return {ids.begin(), ids.end()};
}

/// Pieces around an argument; those without ids are left out.
std::vector<text::PromptPiece> Around(std::span<const base::TokenId> before, int argument,
                                      std::span<const base::TokenId> after) {
  std::vector<text::PromptPiece> pieces;
  if (!before.empty()) pieces.push_back({{}, -1, before});
  pieces.push_back({{}, argument, {}});
  if (!after.empty()) pieces.push_back({{}, -1, after});
  return pieces;
}

}  // namespace

TokenPrompts::TokenPrompts(std::span<const TokenPrompt> prompts) {
  for (const TokenPrompt& prompt : prompts) {
    const int slots = text::PromptTemplate::Parse(prompt.prompt).slot_count;
    if (slots < 1 || slots > 2 || (slots == 1 && prompt.question.empty())) {
      throw Error(
          ErrorCode::kUsage,
          fmt::format("token ids can be given for a prompt with one slot and a question, or "
                      "with two slots; not for '{}'",
                      prompt.prompt));
    }
    const bool inserted = prompts_
                              .try_emplace(prompt.prompt, Tokens(prompt.head), Tokens(prompt.tail),
                                           Tokens(prompt.question), Tokens(prompt.partner_head),
                                           Tokens(prompt.partner_tail))
                              .second;
    if (!inserted) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("token ids are given twice for '{}'", prompt.prompt));
    }
  }
}

const TokenPrompts::Pieces* TokenPrompts::Find(std::string_view prompt) const {
  const auto found = prompts_.find(prompt);
  return found == prompts_.end() ? nullptr : &found->second;
}

text::FilterPrompt LayOutFilter(const TokenPrompts::Pieces& pieces) {
  return {Around(pieces.head, 0, pieces.tail), {{{}, -1, pieces.question}}};
}

text::JoinPrompt LayOutJoin(const TokenPrompts::Pieces& pieces,
                            const std::vector<bool>& is_anchor) {
  QUAIL_CHECK(is_anchor.size() == 2 && is_anchor[0] != is_anchor[1]);
  text::JoinPrompt layout;
  layout.anchor = Around(pieces.head, is_anchor[0] ? 0 : 1, pieces.tail);
  if (!pieces.question.empty()) layout.kept = {{{}, -1, pieces.question}};
  layout.partner = Around(pieces.partner_head, is_anchor[0] ? 1 : 0, pieces.partner_tail);
  return layout;
}

}  // namespace quail::exec
