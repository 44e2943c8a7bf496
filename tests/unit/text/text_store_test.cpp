#include "text/text_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "tiny_vocabulary.h"

namespace quail::text {
namespace {

std::shared_ptr<const BpeTokenizer> ByteTokenizer() {
  return BpeTokenizer::Create(ByteVocabulary({{"a", "b"}}));
}

std::vector<TokenId> TokensOf(const TextStore& store, TextId id) {
  const auto tokens = store.tokens(id);
  return {tokens.begin(), tokens.end()};
}

TEST(TextStore, EqualBytesHaveEqualDenseIds) {
  TextStore store;
  const TextId first = store.Intern("a");
  const TextId empty = store.Intern("");
  const TextId nul = store.Intern(std::string_view("a\0", 2));
  EXPECT_EQ(store.Intern(std::string("a")), first);
  EXPECT_EQ(store.Intern({}), empty);
  EXPECT_EQ((std::set<TextId>{first, empty, nul}),
            (std::set<TextId>{TextId(0), TextId(1), TextId(2)}));
  EXPECT_EQ(store.size(), 3U);
  EXPECT_EQ(store.text(nul), std::string_view("a\0", 2));
  EXPECT_EQ(store.text(empty), "");
  EXPECT_EQ(store.status(first), TextStatus::kPending);
}

RC_GTEST_PROP(TextStore, ManyTextsGetTheIdsThatTheyGetOneByOne, ()) {
  const auto numbers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::string(number % 7, 'x') + char(number));
  TextStore one_by_one;
  std::vector<TextId> expected;
  for (const std::string& text : texts) expected.push_back(one_by_one.Intern(text));
  TextStore at_once;
  std::vector<TextId> ids(texts.size());
  at_once.Intern(std::vector<std::string_view>(texts.begin(), texts.end()), ids);
  RC_ASSERT(ids == expected);
}

TEST(TextStore, TokenListsAreTextsOfTheirOwn) {
  TextStore store;
  const std::vector<TokenId> tokens{TokenId(97), TokenId(98)};
  const TextId list = store.InternTokens(tokens);
  EXPECT_EQ(store.InternTokens(tokens), list);
  EXPECT_NE(store.InternTokens(std::vector<TokenId>{TokenId(97)}), list);
  EXPECT_NE(store.Intern({reinterpret_cast<const char*>(tokens.data()), 8}), list);
  EXPECT_TRUE(store.is_token_list(list));
  EXPECT_EQ(store.status(list), TextStatus::kReady);
  EXPECT_EQ(TokensOf(store, list), tokens);
  const TextId none = store.InternTokens({});
  EXPECT_EQ(store.InternTokens({}), none);
  EXPECT_TRUE(store.tokens(none).empty());
  EXPECT_NE(store.Intern(""), none);
}

TEST(TextStore, TokenizesEachPendingTextOnce) {
  TextStore store;
  base::ThreadPool pool(2);
  const auto tokenizer = ByteTokenizer();
  std::vector<TextId> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(store.Intern("text ab " + std::to_string(i % 2000)));
  ids.push_back(store.Intern(""));
  store.Tokenize(ids, *tokenizer, pool);
  for (const TextId id : ids) {
    ASSERT_EQ(store.status(id), TextStatus::kReady);
    EXPECT_EQ(TokensOf(store, id), Ids(*tokenizer, store.text(id)));
  }
  const TokenId* before = store.tokens(ids[7]).data();
  store.Tokenize(ids, *tokenizer, pool);
  EXPECT_EQ(store.tokens(ids[7]).data(), before);
}

/// Case 44 (invalid UTF-8): the text is kept, its status says where; others are not harmed.
TEST(TextStore, Case44BadBytesAreAStatusWithTheirOffset) {
  TextStore store;
  base::ThreadPool pool(2);
  const std::vector<TextId> ids{store.Intern("ok"), store.Intern("ab\xff"),
                                store.Intern("\xed\xa0\x80")};
  store.Tokenize(ids, *ByteTokenizer(), pool);
  EXPECT_EQ(store.status(ids[0]), TextStatus::kReady);
  ASSERT_EQ(store.status(ids[1]), TextStatus::kInvalidUtf8);
  EXPECT_EQ(store.bad_offset(ids[1]), 2U);
  ASSERT_EQ(store.status(ids[2]), TextStatus::kInvalidUtf8);
  EXPECT_EQ(store.bad_offset(ids[2]), 0U);
  EXPECT_EQ(store.text(ids[1]), "ab\xff");
}

TEST(TextStore, CountsUnknownBytes) {
  BpeVocabulary vocabulary = ByteVocabulary();
  vocabulary.is_control['q'] = true;
  vocabulary.unknown = TokenId('q');
  TextStore store;
  base::ThreadPool pool(1);
  store.Tokenize(std::vector{store.Intern("q q"), store.Intern("x")},
                 *BpeTokenizer::Create(vocabulary), pool);
  EXPECT_EQ(store.unknown_bytes(), 2U);
}

TEST(TextStore, StopsWhenCancelledAndGoesOnLater) {
  TextStore store;
  base::ThreadPool pool(2);
  base::CancelFlag cancel;
  cancel.Cancel();
  const std::vector<TextId> ids{store.Intern("one"), store.Intern("two")};
  store.Tokenize(ids, *ByteTokenizer(), pool, &cancel);
  EXPECT_EQ(store.status(ids[0]), TextStatus::kPending);
  cancel.Reset();
  store.Tokenize(ids, *ByteTokenizer(), pool, &cancel);
  EXPECT_EQ(store.status(ids[1]), TextStatus::kReady);
}

TEST(TextStore, KeepsLargeTexts) {
  TextStore store;
  const std::string large(5'000'000, 'x');
  const TextId id = store.Intern(large);
  EXPECT_EQ(store.Intern(large), id);
  EXPECT_EQ(store.text(id), large);
}

/// Threads that intern overlapping sets while another tokenises agree on every id.
TEST(TextStore, ConcurrentInternIsConsistent) {
  constexpr int kThreads = 4;
  constexpr int kTexts = 4000;
  TextStore store;
  std::vector<std::vector<TextId>> ids(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store, &mine = ids[static_cast<std::size_t>(t)], t] {
      for (int i = 0; i < kTexts; ++i) {
        const int n = (i * (2 * t + 1)) % kTexts;
        mine.push_back(store.Intern("text " + std::to_string(n)));
        ASSERT_EQ(store.text(mine.back()), "text " + std::to_string(n));
      }
    });
  }
  base::ThreadPool pool(2);
  std::vector<TextId> early;
  for (int i = 0; i < 500; ++i) early.push_back(store.Intern("text " + std::to_string(i)));
  store.Tokenize(early, *ByteTokenizer(), pool);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.size(), static_cast<std::size_t>(kTexts));
  std::map<std::string, TextId> by_text;
  for (const auto& mine : ids) {
    for (const TextId id : mine) {
      EXPECT_EQ(by_text.emplace(store.text(id), id).first->second, id);
    }
  }
  EXPECT_EQ(by_text.size(), static_cast<std::size_t>(kTexts));
}

RC_GTEST_PROP(TextStore, BehavesLikeAMap, (const std::vector<std::string>& texts)) {
  TextStore store;
  std::map<std::string, TextId> model;
  for (const std::string& text : texts) {
    const TextId id = store.Intern(text);
    const auto [held, inserted] = model.emplace(text, id);
    RC_ASSERT(held->second == id);
    if (inserted) RC_ASSERT(id.value() == model.size() - 1);
  }
  for (const auto& [text, id] : model) RC_ASSERT(store.text(id) == text);
}

}  // namespace
}  // namespace quail::text
