#include "infer/path_trie.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>

#include "base/flat_index.h"
#include "forest_harness.h"

namespace quail::infer {
namespace {

TEST(PathTrie, APathIsItsTokensHoweverItWasMade) {
  PathTrie trie;
  const Tokens a = MakeTokens({1, 2, 3, 4});
  const Tokens b = MakeTokens({1, 2});
  const Tokens c = MakeTokens({3, 4});
  const auto whole = trie.Insert(PathTrie::kRoot, a, PathTrie::Keep::kStable).position;
  const auto half = trie.Insert(PathTrie::kRoot, b, PathTrie::Keep::kStable).position;
  EXPECT_EQ(trie.Insert(half, c, PathTrie::Keep::kStable).position, whole);
  EXPECT_EQ(trie.depth(half), 2U);
  EXPECT_EQ(trie.depth(whole), 4U);
}

TEST(PathTrie, CountsEachTokenOnceUntilForgotten) {
  PathTrie trie;
  const auto end = trie.Insert(PathTrie::kRoot, TokensOf(1, 9), PathTrie::Keep::kCopy).position;
  EXPECT_EQ(trie.Count(end), 9U);
  EXPECT_EQ(trie.Count(end), 0U);
  trie.Forget();
  EXPECT_EQ(trie.Count(end), 9U);
}

TEST(PathTrie, CopiesOfManyLeavesAreDroppedWithTheirAnchor) {
  PathTrie trie;
  const Tokens anchor = TokensOf(1, 50);
  for (int round = 0; round < 20; ++round) {
    const auto node = trie.Insert(PathTrie::kRoot, anchor, PathTrie::Keep::kStable).position;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      trie.Count(trie.Insert(node, TokensOf(i + 10, 20), PathTrie::Keep::kCopy).position);
    }
    trie.Retire(node);
    EXPECT_EQ(trie.copy_bytes(), 0U);
  }
}

TEST(PathTrie, CopiesOfFewLeavesStayWithinTheirBound) {
  PathTrie trie;
  std::vector<Tokens> documents;
  for (std::uint64_t i = 0; i < 3000; ++i) documents.push_back(TokensOf(i, 20));
  std::uint64_t counted = 0;
  for (const Tokens& document : documents) {
    const auto node = trie.Insert(PathTrie::kRoot, document, PathTrie::Keep::kStable).position;
    for (std::uint64_t q = 0; q < 2; ++q) {
      const Tokens question = TokensOf(9999, 18) + TokensOf(10000 + q, 10000);
      counted += trie.Count(trie.Insert(node, question, PathTrie::Keep::kCopy).position);
      trie.Retire(node);
    }
    EXPECT_LE(trie.copy_bytes(), PathTrie::kCopyBytes);
  }
  EXPECT_GE(counted, 3000U * (20 + 18 + 2 * 10000));
}

RC_GTEST_PROP(PathTrie, CountsWhatSortingCounts, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  PathTrie trie;
  std::deque<Tokens> kept;
  std::vector<std::pair<PathTrie::Position, Tokens>> named{{PathTrie::kRoot, {}}};
  std::vector<Tokens> asked;
  std::uint64_t counted = 0;
  for (int i = 0; i < 60; ++i) {
    Tokens text;
    for (std::uint64_t n = 1 + random() % 8; n > 0; --n) {
      text.emplace_back(static_cast<std::int32_t>(random() % 3));
    }
    const auto [from, before] = named[random() % named.size()];
    if (random() % 2 == 0) {
      kept.push_back(text);
      named.emplace_back(trie.Insert(from, kept.back(), PathTrie::Keep::kStable).position,
                         before + text);
    } else {
      counted += trie.Count(trie.Insert(from, text, PathTrie::Keep::kCopy).position);
      asked.push_back(before + text);
    }
  }
  RC_ASSERT(counted == DistinctTokens(asked));
  std::map<Tokens, PathTrie::Position> positions;
  for (const auto& [position, path] : named) {
    RC_ASSERT(positions.emplace(path, position).first->second == position);
    RC_ASSERT(trie.depth(position) == path.size());
  }
}

RC_GTEST_PROP(FlatIndex, BehavesAsAMap, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  base::FlatIndex index;
  std::map<std::uint64_t, std::uint32_t> map;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t key = (random() % 300) << 32;
    if (random() % 3 == 0) {
      index.Erase(key);
      map.erase(key);
    } else {
      index.Put(key, static_cast<std::uint32_t>(i));
      map[key] = static_cast<std::uint32_t>(i);
    }
    const std::uint64_t other = (random() % 300) << 32;
    const auto found = map.find(other);
    RC_ASSERT(index.Find(other) == (found == map.end() ? base::FlatIndex::kNone : found->second));
    RC_ASSERT(index.size() == map.size());
  }
}

}  // namespace
}  // namespace quail::infer
