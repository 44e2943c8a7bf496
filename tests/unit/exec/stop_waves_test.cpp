#include "exec/stop_waves.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace quail::exec {
namespace {

using Tuple = std::vector<TextId>;

Tuple Of(std::uint32_t id) { return {TextId(id)}; }

/// Rows, by number, whose undecided tuples are [begin, end).
OnDemandReads::StopRows Rows(
    std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> ranges) {
  OnDemandReads::StopRows rows;
  std::uint32_t number = 0;
  for (const auto& [begin, end] : ranges) {
    for (std::uint32_t id = begin; id < end; ++id)
      rows[Of(number)].undecided[plan::CallId(0)].insert(Of(id));
    ++number;
  }
  return rows;
}

/// Answers each wave: TRUE for `met`; the sizes of the waves.
std::vector<std::size_t> WavesOf(StopWaves& waves, const std::set<Tuple>& met) {
  std::map<Tuple, bool> known;
  const auto meets = [&](std::span<const TextId> tuple) -> std::optional<bool> {
    const auto found = known.find(Tuple(tuple.begin(), tuple.end()));
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<std::size_t> sizes;
  for (auto wave = waves.Next(meets); !wave.empty(); wave = waves.Next(meets)) {
    sizes.push_back(wave.size());
    for (const Tuple& tuple : wave) {
      EXPECT_TRUE(known.emplace(tuple, met.contains(tuple)).second) << "asked twice";
    }
  }
  return sizes;
}

TEST(StopWaves, DoubleUntilARowIsMet) {
  StopWaves waves(Rows({{0, 100}}), 3);
  EXPECT_EQ(WavesOf(waves, {Of(15)}), (std::vector<std::size_t>{3, 6, 12}));
}

TEST(StopWaves, AskAllOfARowThatIsNeverMet) {
  StopWaves waves(Rows({{0, 10}}), 4);
  EXPECT_EQ(WavesOf(waves, {}), (std::vector<std::size_t>{4, 6}));
}

TEST(StopWaves, RowsStopByThemselves) {
  StopWaves waves(Rows({{0, 10}, {10, 20}}), 2);
  EXPECT_EQ(WavesOf(waves, {Of(1)}), (std::vector<std::size_t>{4, 4, 4}));
}

TEST(StopWaves, TuplesThatRowsShareAreAskedOnceAndCountForBoth) {
  StopWaves waves(Rows({{0, 10}, {0, 10}, {1, 10}}), 2);
  EXPECT_EQ(WavesOf(waves, {Of(1)}), (std::vector<std::size_t>{3}));
}

TEST(StopWaves, RowsThatAreMetAskNothing) {
  OnDemandReads::StopRows rows = Rows({{0, 10}, {3, 3}});
  rows[Of(0)].met = true;
  StopWaves waves(rows, 1);
  EXPECT_EQ(WavesOf(waves, {}), std::vector<std::size_t>{});
}

TEST(NextOfEach, TakesSomeOfEveryOpenRowOfItsLastCall) {
  OnDemandReads::StopRows rows = Rows({{0, 10}, {10, 20}, {20, 30}});
  rows[Of(0)].met = true;
  rows[Of(1)].undecided[plan::CallId(1)] = {Of(40), Of(41)};
  const TuplesByCall asked = NextOfEach(rows, 3);
  EXPECT_EQ(asked.at(plan::CallId(1)), (std::set<Tuple>{Of(40), Of(41)}));
  EXPECT_EQ(asked.at(plan::CallId(0)), (std::set<Tuple>{Of(20), Of(21), Of(22)}));
}

TEST(NextOfEach, TuplesThatRowsShareAreAskedOnce) {
  EXPECT_EQ(NextOfEach(Rows({{0, 10}, {0, 10}}), 2).at(plan::CallId(0)),
            (std::set<Tuple>{Of(0), Of(1)}));
  EXPECT_TRUE(NextOfEach({}, 2).empty());
}

}  // namespace
}  // namespace quail::exec
