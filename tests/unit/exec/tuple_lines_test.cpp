#include "exec/tuple_lines.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace quail::exec {
namespace {

using Items = std::vector<std::uint32_t>;

Items Taken(TupleLines& lines, std::span<const TextId> tuple) {
  Items items;
  const bool found = lines.Take(tuple, [&](std::uint32_t item) { items.push_back(item); });
  EXPECT_EQ(found, !items.empty());
  return items;
}

constexpr std::array kAb = {TextId(1), TextId(2)};
constexpr std::array kBa = {TextId(2), TextId(1)};

TEST(TupleLines, ServesInOrderOfArrival) {
  TupleLines lines(2, 5);
  EXPECT_TRUE(lines.Add(kAb, 3));
  EXPECT_TRUE(lines.Add(kBa, 0));
  EXPECT_FALSE(lines.Add(kAb, 1));
  EXPECT_FALSE(lines.Add(kAb, 4));
  EXPECT_EQ(lines.size(), 4U);
  EXPECT_EQ(Taken(lines, kAb), (Items{3, 1, 4}));
  EXPECT_EQ(Taken(lines, kAb), Items{});
  EXPECT_EQ(Taken(lines, std::array{TextId(7), TextId(7)}), Items{});
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines.Add(kAb, 1)) << "the line began anew";
  Items rest;
  lines.TakeAll([&](std::uint32_t item) { rest.push_back(item); });
  EXPECT_EQ(rest, (Items{1, 0}));
  EXPECT_EQ(lines.size(), 0U);
}

TEST(TupleLines, AnItemMayMoveOnWhileItsLineIsServed) {
  TupleLines lines(2, 2);
  lines.Add(kAb, 0);
  lines.Add(kAb, 1);
  lines.Take(kAb, [&](std::uint32_t item) { lines.Add(kBa, item); });
  EXPECT_EQ(Taken(lines, kBa), (Items{0, 1}));
}

TEST(TupleLines, LinesStayWhileMoreComeAndGoThanAreKept) {
  constexpr std::uint32_t kMany = 5000;
  TupleLines lines(2, kMany);
  lines.Add(kAb, 0);
  for (std::uint32_t item = 1; item < kMany - 1; ++item) {
    const std::array tuple = {TextId(item), TextId(item + 7)};
    EXPECT_TRUE(lines.Add(tuple, item));
    if (item % 1000 == 0) continue;
    EXPECT_EQ(Taken(lines, tuple), Items{item});
  }
  EXPECT_FALSE(lines.Add(kAb, kMany - 1));
  EXPECT_EQ(Taken(lines, kAb), (Items{0, kMany - 1}));
  EXPECT_EQ(Taken(lines, std::array{TextId(3000), TextId(3007)}), Items{3000});
  EXPECT_EQ(lines.size(), 3U);
}

}  // namespace
}  // namespace quail::exec
