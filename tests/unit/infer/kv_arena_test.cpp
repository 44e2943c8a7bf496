#include "infer/kv_arena.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

namespace quail::infer {
namespace {

std::int64_t Total(const std::vector<KvExtent>& extents) {
  std::int64_t total = 0;
  for (const KvExtent& extent : extents) total += extent.length;
  return total;
}

TEST(KvArena, BeginsAlignedAndPrefersTheGivenPlace) {
  KvArena arena(256, 16);
  std::vector<KvExtent> first;
  arena.Allocate(10, -1, first);
  EXPECT_EQ(first, (std::vector<KvExtent>{{0, 10}}));
  std::vector<KvExtent> second;
  arena.Allocate(10, -1, second);
  EXPECT_EQ(second, (std::vector<KvExtent>{{16, 10}}));
  arena.Allocate(6, 10, first);
  EXPECT_EQ(first, (std::vector<KvExtent>{{0, 16}}));
}

TEST(KvArena, UsesTheLastSlotInSeveralParts) {
  KvArena arena(100, 16);
  std::vector<KvExtent> held[5];
  for (auto& extents : held) arena.Allocate(20, -1, extents);
  EXPECT_EQ(arena.free_slots(), 0);
  for (const int i : {0, 2, 4}) {
    for (const KvExtent& extent : held[i]) arena.Free(extent);
  }
  std::vector<KvExtent> scattered;
  arena.Allocate(60, -1, scattered);
  EXPECT_EQ(Total(scattered), 60);
  EXPECT_EQ(arena.free_slots(), 0);
}

// Case 55: offsets are 64-bit.
TEST(KvArena, Case55MoreSlotsThan32Bits) {
  const std::int64_t slots = (std::int64_t{1} << 33) + 7;
  KvArena arena(slots, 1);
  std::vector<KvExtent> all;
  arena.Allocate(slots - 3, -1, all);
  std::vector<KvExtent> last;
  arena.Allocate(3, -1, last);
  EXPECT_EQ(last, (std::vector<KvExtent>{{slots - 3, 3}}));
}

RC_GTEST_PROP(KvArena, NeverGivesASlotTwiceNorLosesOne, (std::uint64_t seed)) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  const std::int64_t slots = *rc::gen::inRange(1, 200);
  KvArena arena(slots, *rc::gen::element(1, 4, 16));
  std::vector<int> owner(static_cast<std::size_t>(slots), 0);
  std::vector<std::vector<KvExtent>> held;
  for (int step = 0; step < 200; ++step) {
    if (draw(2) == 0 && arena.free_slots() > 0) {
      const std::int64_t count = 1 + draw(arena.free_slots());
      held.emplace_back();
      arena.Allocate(count, draw(3) == 0 ? draw(slots) : -1, held.back());
      RC_ASSERT(Total(held.back()) == count);
      for (const KvExtent& extent : held.back()) {
        for (std::int64_t i = 0; i < extent.length; ++i) {
          RC_ASSERT(owner.at(static_cast<std::size_t>(extent.first + i))++ == 0);
        }
      }
    } else if (!held.empty()) {
      std::swap(held[static_cast<std::size_t>(draw(static_cast<std::int64_t>(held.size())))],
                held.back());
      for (const KvExtent& extent : held.back()) {
        arena.Free(extent);
        for (std::int64_t i = 0; i < extent.length; ++i) {
          --owner[static_cast<std::size_t>(extent.first + i)];
        }
      }
      held.pop_back();
    }
    RC_ASSERT(arena.free_slots() == std::count(owner.begin(), owner.end(), 0));
  }
}

}  // namespace
}  // namespace quail::infer
