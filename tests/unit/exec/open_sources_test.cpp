#include "exec/open_sources.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace quail::exec {
namespace {

using infer::SourceId;

TEST(OpenSources, KeepsTheTagOfEachSourceUntilItsLastAnswer) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random()) % end; };
  OpenSources open;
  std::map<std::uint32_t, std::uint64_t> waiting;  // tag = 3 * source
  std::uint32_t next = 5;
  for (int i = 0; i < 20000; ++i) {
    if (below(100) < 45) {
      next += below(10) == 0 ? 1 + below(5) : 1;  // some sources are others'
      const std::uint64_t answers = 1 + below(3);
      open.Add(SourceId(next), std::uint64_t{3} * next, answers);
      waiting[next] = answers;
    } else {
      const std::uint32_t source =
          below(20) == 0 || waiting.empty()
              ? below(next + 10)
              : std::next(waiting.begin(), below(static_cast<std::uint32_t>(waiting.size())))
                    ->first;
      const auto tag = open.Answered(SourceId(source));
      const auto known = waiting.find(source);
      ASSERT_EQ(tag.has_value(), known != waiting.end()) << source;
      if (!tag) continue;
      ASSERT_EQ(*tag, std::uint64_t{3} * source);
      if (--known->second == 0) waiting.erase(known);
    }
    ASSERT_EQ(open.size(), waiting.size());
  }
  EXPECT_GT(waiting.size(), 10U);
  for (const OpenSources::Open& source : open.all()) {
    EXPECT_EQ(source.waiting, waiting.at(source.source.value()));
  }
  open.clear();
  EXPECT_FALSE(open.Answered(SourceId(next)));
  open.Add(SourceId(2), 1, 1);
  EXPECT_EQ(open.Answered(SourceId(2)), 1U);
}

}  // namespace
}  // namespace quail::exec
