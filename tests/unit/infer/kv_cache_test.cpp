#include "infer/kv_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace quail::infer {
namespace {

/// Nodes of ten tokens each under the root, in an arena for some of them.
class KvCacheTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kLength = 10;

  KvCacheTest() : tokens_(kLength, TokenId(1)), cache_(tree_, 100, 1) {}

  KvId Stored(KvId parent = 0) {
    const KvId id = tree_.Add(parent, tokens_);
    cache_.Store(id, kLength);
    return id;
  }
  KvId Wanted() {
    const KvId id = Stored();
    cache_.AddDemand(id, 1);
    return id;
  }
  KvId Possible(float chance) {
    const KvId id = Stored();
    cache_.SetChance(id, chance);
    return id;
  }
  /// The nodes in the order in which they go as more room is asked for.
  std::vector<KvId> Evicted(std::size_t nodes, const KvCache::Limit& limit = {}) {
    std::vector<KvId> evicted;
    for (std::size_t i = 1; i <= nodes; ++i) {
      if (!cache_.Reserve(cache_.free_slots() + kLength, limit)) break;
    }
    cache_.TakeEvicted(evicted);
    return evicted;
  }

  std::vector<TokenId> tokens_;
  KvTree tree_;
  KvCache cache_;
};

TEST_F(KvCacheTest, WhatNobodyWantsGoesFirstThenByValueThenByFarthestNextUse) {
  const KvId first = Wanted();
  const KvId likely = Possible(0.9F);
  const KvId second = Wanted();
  const KvId dead = Stored();
  const KvId unlikely = Possible(0.1F);
  const KvId third = Wanted();
  const KvId older_dead = Stored();
  // Wanted nodes are served in the order in which they were begun: the last is needed last.
  EXPECT_EQ(Evicted(7),
            (std::vector<KvId>{dead, older_dead, unlikely, likely, third, second, first}));
  EXPECT_EQ(cache_.evictions(), 5U) << "nodes that nobody wanted are not evicted but over";
  EXPECT_EQ(cache_.free_slots(), 100);
}

TEST_F(KvCacheTest, PossibleUsesGiveWayToMoreLikelyOnesOnly) {
  const KvId half = Possible(0.5F);
  const KvId wanted = Wanted();
  const KvCache::Limit as_likely{KvCache::Want::kPerhaps, 0.5F};
  EXPECT_EQ(Evicted(2, as_likely), std::vector<KvId>{});
  const KvCache::Limit likelier{KvCache::Want::kPerhaps, 0.6F};
  EXPECT_EQ(Evicted(2, likelier), std::vector<KvId>{half});
  EXPECT_EQ(tree_.state(wanted).stored, kLength)
      << "a possible use takes nothing from a certain one";
}

TEST_F(KvCacheTest, AChangeOfMindChangesTheOrder) {
  const KvId a = Possible(0.2F);
  const KvId b = Possible(0.4F);
  const KvId c = Wanted();
  cache_.SetChance(a, 0.6F);
  cache_.AddDemand(c, -1);
  cache_.AddDemand(b, 1);
  EXPECT_EQ(Evicted(3), (std::vector<KvId>{c, a, b}));
}

TEST_F(KvCacheTest, AParentStaysAsLongAsItsChildrenAreStored) {
  const KvId parent = Stored();
  const KvId child = Stored(parent);
  cache_.AddDemand(child, 1);
  const KvId other = Wanted();
  EXPECT_EQ(Evicted(3), (std::vector<KvId>{other, child, parent}));
}

TEST_F(KvCacheTest, DemandAtZeroFreesAtOnceAndStaysReadableUntilOverwritten) {
  const KvId id = Wanted();
  EXPECT_EQ(cache_.held(), kLength);
  cache_.AddDemand(id, -1);
  EXPECT_EQ(cache_.held(), 0);
  EXPECT_EQ(tree_.state(id).stored, kLength);
  cache_.AddDemand(id, 1);
  EXPECT_EQ(cache_.held(), kLength);
}

TEST_F(KvCacheTest, WhatTheChunkReadsStays) {
  const KvId read = Stored();
  const KvId other = Wanted();
  cache_.Pin(read);
  EXPECT_EQ(Evicted(2), std::vector<KvId>{other});
  cache_.EndChunk();
  EXPECT_EQ(Evicted(1), std::vector<KvId>{read});
}

}  // namespace
}  // namespace quail::infer
