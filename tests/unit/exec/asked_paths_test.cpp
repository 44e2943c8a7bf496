#include "exec/asked_paths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <set>

namespace quail::exec {
namespace {

using Ids = std::vector<base::TokenId>;

/// Asks over few tokens, so that paths have much in common, and the answer from a set of prefixes.
class Asked {
 public:
  void Ask(const std::vector<std::vector<int>>& stem, const std::vector<std::vector<int>>& leaves) {
    std::vector<AskedPaths::Tokens> pieces;
    Ids path;
    for (const auto& piece : stem) {
      pieces.emplace_back(Keep(piece));
      for (const int id : piece) path.emplace_back(id);
    }
    const AskedPaths::Stem added = paths_.AddStem(std::move(pieces));
    for (const auto& leaf : leaves) {
      paths_.Add(added, Keep(leaf));
      Ids prefix = path;
      for (std::size_t i = 1; i <= prefix.size(); ++i) {
        prefixes_.emplace(prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(i));
      }
      for (const int id : leaf) {
        prefix.emplace_back(id);
        prefixes_.insert(prefix);
      }
    }
  }
  std::uint64_t counted() const { return paths_.CountDistinctTokens(); }
  std::uint64_t expected() const { return prefixes_.size(); }

 private:
  AskedPaths::Tokens Keep(const std::vector<int>& ids) {
    Ids& kept = kept_.emplace_back();
    for (const int id : ids) kept.emplace_back(id);
    return kept;
  }

  AskedPaths paths_;
  std::deque<Ids> kept_;
  std::set<Ids> prefixes_;
};

TEST(AskedPaths, CountsWhatSnapshotsShareOnce) {
  Asked asked;
  asked.Ask({{1, 2}}, {{9, 9}});
  asked.Ask({{1, 2, 3}}, {{9, 9}});
  asked.Ask({{1, 2, 9}}, {{9, 9}, {4}});
  EXPECT_EQ(asked.counted(), asked.expected());
  EXPECT_EQ(asked.counted(), 9U);
}

TEST(AskedPaths, IsZeroWithoutAsks) { EXPECT_EQ(AskedPaths().CountDistinctTokens(), 0U); }

RC_GTEST_PROP(AskedPaths, IsTheNumberOfDistinctPrefixes, ()) {
  const auto tokens = [](int least) {
    return rc::gen::suchThat(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3)),
                             [least](const std::vector<int>& ids) {
                               return ids.size() >= static_cast<std::size_t>(least) &&
                                      ids.size() < 6;
                             });
  };
  Asked asked;
  const int asks = *rc::gen::inRange(1, 8);
  for (int i = 0; i < asks; ++i) {
    std::vector<std::vector<int>> stem;
    std::vector<std::vector<int>> leaves;
    for (int k = *rc::gen::inRange(0, 4); k > 0; --k) stem.push_back(*tokens(0));
    for (int k = *rc::gen::inRange(1, 4); k > 0; --k) leaves.push_back(*tokens(1));
    asked.Ask(stem, leaves);
  }
  RC_ASSERT(asked.counted() == asked.expected());
}

}  // namespace
}  // namespace quail::exec
