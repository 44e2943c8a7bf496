#include "base/strong_id.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>
#include <unordered_set>

namespace quail::base {
namespace {

static_assert(!std::is_convertible_v<TokenId, TextId>);
static_assert(!std::is_convertible_v<std::int32_t, TokenId>);
static_assert(!std::is_constructible_v<TokenId, TextId>);
static_assert(sizeof(TokenId) == sizeof(std::int32_t));

TEST(StrongIdTest, OrdersAndHashesByValue) {
  const std::set<TextId> ordered{TextId(7), TextId(2), TextId(7)};
  EXPECT_EQ(ordered.size(), 2u);
  EXPECT_EQ(ordered.begin()->value(), 2u);
  const std::unordered_set<TextId> hashed{TextId(7), TextId(2), TextId(7)};
  EXPECT_EQ(hashed.count(TextId(7)), 1u);
  EXPECT_EQ(hashed.size(), 2u);
}

}  // namespace
}  // namespace quail::base
