#include "text/answer_words.h"

#include <gtest/gtest.h>

#include "quail/error.h"
#include "tiny_vocabulary.h"

namespace quail::text {
namespace {

/// All bytes, and the given words, reachable as whole words.
std::shared_ptr<const BpeTokenizer> WithWords(const std::vector<std::string>& words) {
  BpeVocabulary vocabulary = ByteVocabulary();
  vocabulary.ignore_merges = true;
  for (const std::string& word : words) {
    vocabulary.tokens.push_back(word);
    vocabulary.is_control.push_back(false);
  }
  return BpeTokenizer::Create(std::move(vocabulary));
}

std::vector<std::string> Spellings(const BpeTokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> spellings;
  for (const TokenId id : ids) spellings.push_back(tokenizer.Decode({id}));
  return spellings;
}

using Strings = std::vector<std::string>;

TEST(AnswerWords, CapitalsWhereTheVocabularyHasThem) {
  const auto tokenizer = WithWords(
      {"TRUE", " TRUE", "FALSE", " FALSE", "True", " True", "False", " False", "Yes", "No"});
  const AnswerChoice choice = ChooseAnswerWords(*tokenizer);
  EXPECT_EQ(choice.words.yes, "TRUE");
  EXPECT_EQ(choice.words.no, "FALSE");
  EXPECT_EQ(Spellings(*tokenizer, choice.yes), (Strings{"TRUE", " TRUE", "True", " True"}));
  EXPECT_EQ(Spellings(*tokenizer, choice.no), (Strings{"FALSE", " FALSE", "False", " False"}));
}

TEST(AnswerWords, ElseTrueAndFalseElseYesAndNo) {
  const auto truth = WithWords({"TRUE", "True", " True", "False", " False"});
  EXPECT_EQ(ChooseAnswerWords(*truth).words.yes, "True");
  EXPECT_EQ(ChooseAnswerWords(*truth).yes.size(), 2U);
  const auto yes = WithWords({"Yes", "No", " No"});
  EXPECT_EQ(ChooseAnswerWords(*yes).words.no, "No");
  EXPECT_EQ(ChooseAnswerWords(*yes).yes.size(), 1U) << "as many on each side";
  EXPECT_EQ(ChooseAnswerWords(*yes).no.size(), 1U);
}

TEST(AnswerWords, RefusesAVocabularyWithoutAny) {
  EXPECT_THROW(ChooseAnswerWords(*WithWords({"TRUE", "False"})), Error);
}

}  // namespace
}  // namespace quail::text
