#include "base/hash128.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <unordered_set>

namespace quail::base {
namespace {

/// XXH3-128 of the empty input with seed 0, from the test vectors of xxHash's specification.
TEST(Hash128Test, MatchesThePublishedValueOfTheEmptyInput) {
  EXPECT_EQ(HashBytes("").ToHex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash128Test, HexKeepsLeadingZeros) {
  EXPECT_EQ((Hash128{.low = 0xab, .high = 1}).ToHex(), "000000000000000100000000000000ab");
}

TEST(Hash128Test, TextAndBytesAgree) {
  const std::array<std::byte, 3> bytes{std::byte{'a'}, std::byte{0}, std::byte{'b'}};
  EXPECT_EQ(HashBytes(bytes, 7), HashBytes(std::string_view("a\0b", 3), 7));
}

TEST(Hash128Test, SeedAndEveryBitMatter) {
  const std::string text(300, 'x');
  std::unordered_set<Hash128> seen{HashBytes(text), HashBytes(text, 1)};
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      seen.insert(HashBytes(changed));
    }
  }
  EXPECT_EQ(seen.size(), 2 + text.size() * 8);
}

TEST(Hash128Test, CombineDependsOnOrderAndGrouping) {
  const Hash128 a = HashBytes("a");
  const Hash128 b = HashBytes("b");
  const Hash128 c = HashBytes("c");
  EXPECT_NE(Combine(a, b), Combine(b, a));
  EXPECT_NE(Combine(Combine(a, b), c), Combine(a, Combine(b, c)));
  EXPECT_EQ(Combine(a, b), Combine(HashBytes("a"), HashBytes("b")));
}

}  // namespace
}  // namespace quail::base
