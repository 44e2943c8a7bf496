#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"

namespace quail::text {

/// The two words that a model answers with, and that its prompts name (sql.md sections 4 and 5).
struct AnswerWords {
  std::string yes = "TRUE";
  std::string no = "FALSE";
};

/// A prompt template in canonical form (sql.md section 1): literal parts and slots in order of
/// appearance.
struct PromptTemplate {
  struct Part {
    std::string literal;  ///< used when slot < 0; braces undoubled
    int slot = -1;        ///< index of an argument
  };
  std::vector<Part> parts;
  int slot_count = 0;  ///< arguments that slots use are [0, slot_count)

  /// Reads `{n}`, `{{`, `}}` of a canonical template; any other brace is text.
  static PromptTemplate Parse(std::string_view canonical);
};

/// A prompt as pieces that are tokenised one by one, their ids concatenated. A piece is constant
/// text, constant tokens or an argument.
struct PromptPiece {
  std::string literal;                         ///< used when argument < 0 and there are no tokens
  int argument = -1;                           ///< index of an argument of the call
  std::span<const base::TokenId> tokens = {};  ///< used when argument < 0; kept by others
};

/// Layout `chat` is layout `plain` with the model's own turns around it.
struct ChatPieces {
  std::vector<base::TokenId> before;  ///< up to the user's words
  std::vector<base::TokenId> after;   ///< from there to where the model answers
};

/// A filter: `document` is shared by every question about the same arguments, `question` is the
/// ask.
struct FilterPrompt {
  std::vector<PromptPiece> document;
  std::vector<PromptPiece> question;
};

/// A join: `anchor` once per anchor, `kept` after it once per anchor, `partner` per pair.
struct JoinPrompt {
  std::vector<PromptPiece> anchor;
  std::vector<PromptPiece> kept;
  std::vector<PromptPiece> partner;
};

/// Puts the turns around; `chat` outlives the prompt.
void PutTurnsAround(const ChatPieces& chat, FilterPrompt& prompt);
void PutTurnsAround(const ChatPieces& chat, JoinPrompt& prompt);

/// Layout `plain` of sql.md section 4. `prompt` with no slots has an empty document.
FilterPrompt LayOutFilter(const PromptTemplate& prompt, const AnswerWords& words);
/// `is_anchor[n]` says whether argument n belongs to the anchor's side. REQUIRES: both sides have
/// an argument.
JoinPrompt LayOutJoin(const PromptTemplate& prompt, const std::vector<bool>& is_anchor,
                      const AnswerWords& words);

}  // namespace quail::text
