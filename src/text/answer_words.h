#pragma once

#include <vector>

#include "text/bpe_tokenizer.h"
#include "text/prompt.h"

namespace quail::text {

/// How a model with a given vocabulary says yes and no.
struct AnswerChoice {
  AnswerWords words;  ///< the pair that its prompts name
  std::vector<TokenId>
      yes;  ///< single-token spellings of the TRUE side, without and with a leading space
  std::vector<TokenId> no;  ///< as many of the FALSE side, in the same order
};

/// The first of TRUE / FALSE, True / False, Yes / No whose two words are single tokens names the
/// answers; the candidate ids are all spellings of that meaning that are single tokens on both
/// sides (sql.md sections 4 and 5). Throws Error{kModel} where no pair is.
AnswerChoice ChooseAnswerWords(const BpeTokenizer& tokenizer);

}  // namespace quail::text
