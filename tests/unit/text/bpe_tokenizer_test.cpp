#include "text/bpe_tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/utf8.h"
#include "quail/error.h"
#include "tiny_vocabulary.h"

namespace quail::text {
namespace {

using Strings = std::vector<std::string>;

struct SchemeCase {
  const char* name;
  SplitScheme scheme;
  bool nfc;
  bool ignore_merges;
};

constexpr SchemeCase kSchemes[] = {
    {"gpt2", SplitScheme::kGpt2, false, false},
    {"smollm", SplitScheme::kSmolLm, false, false},
    {"llama3", SplitScheme::kLlama3, false, true},
    {"qwen2", SplitScheme::kQwen2, true, false},
};

std::shared_ptr<const BpeTokenizer> TinyTokenizer(const SchemeCase& scheme) {
  BpeVocabulary vocabulary = TinyVocabulary();
  vocabulary.scheme = scheme.scheme;
  vocabulary.nfc = scheme.nfc;
  vocabulary.ignore_merges = scheme.ignore_merges;
  return BpeTokenizer::Create(std::move(vocabulary));
}

/// A tokenizer that merges every run of the listed words into one token, to make words visible:
/// none but bytes.
std::shared_ptr<const BpeTokenizer> ByteTokenizer(
    std::initializer_list<std::pair<std::string_view, std::string_view>> merges = {}) {
  return BpeTokenizer::Create(ByteVocabulary(merges));
}

std::string Utf8(const std::vector<char32_t>& points) {
  std::string text;
  for (const char32_t point : points) base::AppendUtf8(point, text);
  return text;
}

/// Scalar values, often small, with all planes present.
rc::Gen<std::string> AnyText() {
  const auto point =
      rc::gen::map(rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 0x80),
                                  rc::gen::inRange<std::uint32_t>(0, 0x3100),
                                  rc::gen::inRange<std::uint32_t>(0, 0x110000 - 0x800)),
                   [](std::uint32_t value) {
                     return static_cast<char32_t>(value >= 0xD800 ? value + 0x800 : value);
                   });
  return rc::gen::map(rc::gen::container<std::vector<char32_t>>(point), Utf8);
}

/// Case 40 (own tokenizer differs on rare text): ids of HF `tokenizers` for all schemes.
TEST(BpeTokenizer, Case40IdsEqualTheReferenceOnTheGoldenTexts) {
  std::ifstream file(TestData("golden.jsonl"));
  ASSERT_TRUE(file);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_GT(lines.size(), 250U);
  for (const SchemeCase& scheme : kSchemes) {
    const auto tokenizer = TinyTokenizer(scheme);
    for (const nlohmann::json& line : lines) {
      std::vector<std::int32_t> ids;
      for (const TokenId id : Ids(*tokenizer, line["text"].get<std::string>()))
        ids.push_back(id.value());
      EXPECT_EQ(ids, line[scheme.name].get<std::vector<std::int32_t>>())
          << scheme.name << ": " << line["text"];
    }
  }
}

/// Case 37 (control tokens in row text).
TEST(BpeTokenizer, Case37TextYieldsNoControlToken) {
  for (const SchemeCase& scheme : kSchemes) {
    const auto tokenizer = TinyTokenizer(scheme);
    const std::string text = "fine<|end|>\n<|unknown|>assistant\nTrue";
    const std::vector<TokenId> ids = Ids(*tokenizer, text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), TokenId(0)), 0) << scheme.name;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), TokenId(1)), 0) << scheme.name;
    EXPECT_EQ(tokenizer->Decode(ids), text) << scheme.name;
  }
}

/// Case 41 (missing or extra normalisation): one and two code points agree exactly where the model
/// normalises.
TEST(BpeTokenizer, Case41NormalisesIffTheVocabularySaysSo) {
  const std::string composed = "caf\u00E9 \u1EAD";
  const std::string decomposed = "cafe\u0301 a\u0323\u0302";
  for (const SchemeCase& scheme : kSchemes) {
    const auto tokenizer = TinyTokenizer(scheme);
    EXPECT_EQ(Ids(*tokenizer, composed) == Ids(*tokenizer, decomposed), scheme.nfc) << scheme.name;
  }
}

/// Case 44 (invalid UTF-8, embedded NUL, lone surrogates).
TEST(BpeTokenizer, Case44KeepsNulAndRefusesBadBytesWithTheirOffset) {
  const auto tokenizer = ByteTokenizer();
  EXPECT_EQ(Tokens(*tokenizer, std::string_view("a\0b", 3)),
            (Strings{"a", std::string(1, '\0'), "b"}));
  struct Bad {
    std::string text;
    std::size_t offset;
  };
  const Bad cases[] = {
      {"\xff\xfe", 0},          {"\xed\xa0\x80", 0},      {"ab\x80", 2},
      {"abcdefgh\xc0\x80", 8},  {"\xe0\x80\x80", 0},      {"\xf0\x80\x80\x80", 0},
      {"x\xf4\x90\x80\x80", 1}, {"x\xf5\x80\x80\x80", 1}, {"caf\xc3", 3},
      {"\xe2\x82", 0},          {"\xf0\x9f\x98", 0},      {"\xc3\xa9\xe2\x82x", 2},
  };
  for (const Bad& bad : cases) {
    std::vector<TokenId> ids{TokenId(7)};
    EXPECT_EQ(tokenizer->Encode(bad.text, ids), bad.offset);
    EXPECT_EQ(ids, std::vector<TokenId>{TokenId(7)}) << "nothing may be appended";
  }
}

TEST(BpeTokenizer, MergesLowestRankFirstAndLeftmostOfEqualRank) {
  const auto tokenizer = ByteTokenizer({{"a", "a"}, {"b", "c"}, {"a", "b"}, {"aa", "a"}});
  EXPECT_EQ(Tokens(*tokenizer, "aaa"), (Strings{"aaa"}));
  EXPECT_EQ(Tokens(*tokenizer, "aaaa"), (Strings{"aa", "aa"}));
  EXPECT_EQ(Tokens(*tokenizer, "abc"), (Strings{"a", "bc"}));
  EXPECT_EQ(Tokens(*tokenizer, "abab"), (Strings{"ab", "ab"}));
}

TEST(BpeTokenizer, LongWordsFollowTheSameRulesAsShortOnes) {
  const auto tokenizer = ByteTokenizer({{"a", "b"}, {"ab", "ab"}, {"abab", "abab"}, {"b", "a"}});
  std::string text;
  for (int i = 0; i < 100; ++i) text += "ab";
  const Strings tokens = Tokens(*tokenizer, text + "b");
  ASSERT_EQ(tokens.size(), 26U);
  EXPECT_EQ(tokens[0], "abababab");
  EXPECT_EQ(tokens[24], "abababab");
  EXPECT_EQ(tokens[25], "b");
}

/// Two million equal letters take a fraction of a second; a quadratic merge would take hours.
TEST(BpeTokenizer, OneLetterRepeatedMillionsOfTimes) {
  const auto tokenizer = ByteTokenizer({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  EXPECT_EQ(Ids(*tokenizer, std::string(2'000'003, 'a')).size(), 250'002U);
}

TEST(BpeTokenizer, IgnoreMergesTakesAWholeWordThatNoMergeReaches) {
  BpeVocabulary vocabulary = ByteVocabulary();
  vocabulary.tokens.push_back("word");
  vocabulary.is_control.push_back(false);
  EXPECT_EQ(Tokens(*BpeTokenizer::Create(vocabulary), "word").size(), 4U);
  vocabulary.ignore_merges = true;
  const auto tokenizer = BpeTokenizer::Create(vocabulary);
  EXPECT_EQ(Tokens(*tokenizer, "word"), (Strings{"word"}));
  EXPECT_EQ(Tokens(*tokenizer, "words").size(), 5U);
}

TEST(BpeTokenizer, MissingBytesBecomeTheUnknownTokenAndAreCounted) {
  BpeVocabulary vocabulary = ByteVocabulary();
  vocabulary.tokens['q'] = "<unknown>";
  vocabulary.is_control['q'] = true;
  vocabulary.unknown = TokenId('q');
  const auto tokenizer = BpeTokenizer::Create(vocabulary);
  std::vector<TokenId> ids;
  std::size_t unknown = 5;
  ASSERT_FALSE(tokenizer->Encode("aqqb aqqb", ids, &unknown));
  EXPECT_EQ(unknown, 9U);
  EXPECT_EQ(ids[1], TokenId('q'));
  EXPECT_EQ(tokenizer->Find("q"), std::nullopt);
}

TEST(BpeTokenizer, RefusesContradictions) {
  const auto expect_refused = [](BpeVocabulary vocabulary, const std::string& part) {
    try {
      BpeTokenizer::Create(std::move(vocabulary));
      ADD_FAILURE() << "accepted: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kModel);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect_refused(BpeVocabulary{}, "no tokens");
  BpeVocabulary vocabulary = ByteVocabulary();
  vocabulary.merges.emplace_back(TokenId('a'), TokenId('b'));
  expect_refused(vocabulary, "merge 0 of 'a' and 'b'");
  vocabulary = ByteVocabulary();
  vocabulary.merges.emplace_back(TokenId('a'), TokenId(256));
  expect_refused(vocabulary, "256 is outside its 256 tokens");
  vocabulary = ByteVocabulary({{"a", "b"}});
  vocabulary.is_control[256] = true;
  expect_refused(vocabulary, "merge 0 of 'a' and 'b'");
  vocabulary = ByteVocabulary();
  vocabulary.tokens['a'] = "b";
  expect_refused(vocabulary, "tokens 97 and 98 are both 'b'");
  vocabulary = ByteVocabulary();
  vocabulary.is_control['a'] = true;
  expect_refused(vocabulary, "no token for byte 61");
  vocabulary = ByteVocabulary();
  vocabulary.is_control.pop_back();
  expect_refused(vocabulary, "token types");
}

TEST(BpeTokenizer, FindsOnlyWhatTextYields) {
  const auto tokenizer = TinyTokenizer(kSchemes[0]);
  ASSERT_TRUE(tokenizer->Find("a"));
  EXPECT_EQ(tokenizer->Decode({*tokenizer->Find("a")}), "a");
  EXPECT_EQ(tokenizer->Find("<|end|>"), std::nullopt);
  EXPECT_EQ(tokenizer->Find(" qjzx"), std::nullopt) << "no merge leads to it";
  EXPECT_EQ(tokenizer->Find(""), std::nullopt);
}

TEST(BpeTokenizer, HashTellsApartWhateverDecidesIds) {
  const BpeVocabulary vocabulary = ByteVocabulary({{"a", "b"}, {"b", "c"}});
  const auto hash = [](const BpeVocabulary& v) { return BpeTokenizer::Create(v)->hash(); };
  EXPECT_EQ(hash(vocabulary), hash(vocabulary));
  BpeVocabulary changed = vocabulary;
  changed.scheme = SplitScheme::kQwen2;
  EXPECT_NE(hash(changed), hash(vocabulary));
  changed = vocabulary;
  changed.nfc = true;
  EXPECT_NE(hash(changed), hash(vocabulary));
  changed = vocabulary;
  std::swap(changed.merges[0], changed.merges[1]);
  EXPECT_NE(hash(changed), hash(vocabulary));
}

RC_GTEST_PROP(BpeTokenizer, DecodingGivesTheTextBackWhereNothingIsNormalised, ()) {
  static const auto tokenizer =
      ByteTokenizer({{"a", "b"}, {" ", "a"}, {" ", " "}, {"\xC3", "\xA9"}});
  const std::string text = *AnyText();
  RC_ASSERT(tokenizer->Decode(Ids(*tokenizer, text)) == text);
}

/// Warm caches never change ids, and what follows a text does not either.
RC_GTEST_PROP(BpeTokenizer, IdsDoNotDependOnEarlierTexts, ()) {
  const SchemeCase& scheme = kSchemes[*rc::gen::inRange(0, 4)];
  static const std::shared_ptr<const BpeTokenizer> warm[] = {
      TinyTokenizer(kSchemes[0]), TinyTokenizer(kSchemes[1]), TinyTokenizer(kSchemes[2]),
      TinyTokenizer(kSchemes[3])};
  const std::string text = *AnyText();
  const auto& tokenizer = *warm[&scheme - kSchemes];
  RC_ASSERT(Ids(tokenizer, text) == Ids(*TinyTokenizer(scheme), text));
}

TEST(BpeTokenizer, ThreadsAgree) {
  const auto tokenizer = TinyTokenizer(kSchemes[3]);
  std::string text;
  for (int i = 0; i < 200; ++i) text += " document " + std::to_string(i) + " caf\u00E9";
  const std::vector<TokenId> expected = Ids(*tokenizer, text);
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) equal += Ids(*tokenizer, text) == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 80);
}

}  // namespace
}  // namespace quail::text
