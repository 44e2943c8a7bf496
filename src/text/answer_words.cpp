#include "text/answer_words.h"

#include <array>
#include <string>

#include "quail/error.h"

namespace quail::text {
namespace {

struct WordPair {
  const char* yes;
  const char* no;
};

constexpr std::array<WordPair, 2> kTruthWords{{{"TRUE", "FALSE"}, {"True", "False"}}};
constexpr std::array<WordPair, 1> kYesWords{{{"Yes", "No"}}};

/// Adds the spellings of `pairs`; the words are the first pair found without a leading space.
template <std::size_t count>
bool Collect(const BpeTokenizer& tokenizer, const std::array<WordPair, count>& pairs,
             AnswerChoice& choice) {
  bool named = false;
  for (const WordPair& pair : pairs) {
    for (const std::string space : {"", " "}) {
      const auto yes = tokenizer.Find(space + pair.yes);
      const auto no = tokenizer.Find(space + pair.no);
      if (!yes || !no) continue;
      choice.yes.push_back(*yes);
      choice.no.push_back(*no);
      if (named || !space.empty()) continue;
      choice.words = {pair.yes, pair.no};
      named = true;
    }
  }
  return named;
}

}  // namespace

AnswerChoice ChooseAnswerWords(const BpeTokenizer& tokenizer) {
  AnswerChoice truth;
  if (Collect(tokenizer, kTruthWords, truth)) return truth;
  AnswerChoice yes;
  if (Collect(tokenizer, kYesWords, yes)) return yes;
  throw Error(ErrorCode::kModel,
              "the vocabulary has no single tokens for TRUE / FALSE, True / False or Yes / No, so "
              "this model cannot answer");
}

}  // namespace quail::text
