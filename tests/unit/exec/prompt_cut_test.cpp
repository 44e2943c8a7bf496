#include "exec/prompt_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace quail::exec {
namespace {

using Lengths = std::vector<std::size_t>;

std::vector<base::TokenId> Text(int tokens) {
  std::vector<base::TokenId> text;
  for (int i = 0; i < tokens; ++i) text.emplace_back(i);
  return text;
}

std::vector<int> Kept(std::span<const base::TokenId> text, std::size_t kept, plan::OnLong on_long) {
  std::vector<std::span<const base::TokenId>> pieces;
  AppendKept(text, kept, on_long, pieces);
  std::vector<int> tokens;
  for (const auto& piece : pieces) {
    for (const base::TokenId token : piece) tokens.push_back(token.value());
  }
  return tokens;
}

TEST(PromptCut, KeepsTheEndThatIsAskedFor) {
  const auto text = Text(7);
  EXPECT_EQ(Kept(text, 3, plan::OnLong::kHead), (std::vector{0, 1, 2}));
  EXPECT_EQ(Kept(text, 3, plan::OnLong::kTail), (std::vector{4, 5, 6}));
  EXPECT_EQ(Kept(text, 4, plan::OnLong::kMiddle), (std::vector{0, 1, 5, 6}));
  EXPECT_EQ(Kept(text, 3, plan::OnLong::kMiddle), (std::vector{0, 1, 6}));
  EXPECT_EQ(Kept(text, 1, plan::OnLong::kMiddle), (std::vector{0}));
  EXPECT_EQ(Kept(text, 7, plan::OnLong::kTail), (std::vector{0, 1, 2, 3, 4, 5, 6}));
}

TEST(PromptCut, TheLongestTextsPay) {
  EXPECT_EQ(KeptLengths(Lengths{5, 100, 7}, 30), (Lengths{5, 18, 7}));
  EXPECT_EQ(KeptLengths(Lengths{100, 50, 4}, 24), (Lengths{10, 10, 4}));
  EXPECT_EQ(KeptLengths(Lengths{100}, 24), (Lengths{24}));
  EXPECT_EQ(KeptLengths(Lengths{3, 4}, 7), (Lengths{3, 4}));
  EXPECT_EQ(KeptLengths(Lengths{0, 9}, 4), (Lengths{0, 4}));
  EXPECT_EQ(KeptLengths(Lengths{}, 4), Lengths{});
}

TEST(PromptCut, KeptTextsFillTheRoom) {
  for (std::size_t room = 0; room < 40; ++room) {
    const Lengths lengths = {3, 17, 11, 17, 0};
    const Lengths kept = KeptLengths(lengths, room);
    const std::size_t total = std::accumulate(kept.begin(), kept.end(), std::size_t{0});
    EXPECT_LE(total, room);
    EXPECT_GT(total + lengths.size(), room) << "less than a token a text is wasted";
  }
}

TEST(PromptCut, BothSidesOfAPairFit) {
  constexpr std::size_t kRoom = 1000;
  constexpr std::size_t kGrain = 64;
  for (std::size_t anchor = 1; anchor < 3000; anchor += 97) {
    for (std::size_t partner = 1; partner < 3000; partner += 89) {
      if (anchor + partner <= kRoom) continue;
      const PairRoom room = RoomOfPair(anchor, partner, kRoom, kGrain);
      EXPECT_LE(room.anchor + room.partner, kRoom);
      EXPECT_GT(room.anchor + room.partner, kRoom - kGrain);
      EXPECT_GE(room.anchor, std::min(anchor, kRoom / 2));
      EXPECT_GE(room.partner, std::min(partner, kRoom / 2));
    }
  }
}

TEST(PromptCut, AnAnchorIsCutToFewLengths) {
  std::set<std::size_t> lengths;
  for (std::size_t partner = 1; partner <= 500; ++partner) {
    lengths.insert(RoomOfPair(5000, partner, 1000, 64).anchor);
  }
  EXPECT_LE(lengths.size(), 8U);
}

}  // namespace
}  // namespace quail::exec
