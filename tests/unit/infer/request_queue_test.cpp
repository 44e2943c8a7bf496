#include "infer/baseline/request_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "forest_harness.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

constexpr std::uint64_t kBlock = 16;  // positions that the prefix cache takes together

HarnessOptions Queue(std::int64_t kv_tokens = 1 << 16, std::int32_t chunk_tokens = 512) {
  HarnessOptions options;
  options.kv_tokens = kv_tokens;
  options.chunk_tokens = chunk_tokens;
  options.request_queue = true;
  return options;
}

void ExpectRight(Harness& harness, const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    ASSERT_EQ(answer.state, AnswerState::kValue);
    EXPECT_EQ(answer.value, harness.Expected(answer));
    EXPECT_EQ(answer.path_tokens, harness.PathOf(answer).size());
  }
}

TEST(RequestQueue, SharesWholeBlocksOnly) {
  Harness harness(Queue());
  const Tokens stem = TokensOf(1, 40);
  harness.Ask(harness.Child(harness.root(), stem), {TokensOf(2, 10), TokensOf(3, 10)});
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 2U);
  ExpectRight(harness, answers);
  EXPECT_EQ(harness.fresh(), 50 + 50 - 2 * kBlock);
  EXPECT_EQ(harness.minimum(), 60U);
}

TEST(RequestQueue, ComputesTheLastTokenOfEveryRequest) {
  Harness harness(Queue());
  const Tokens same = TokensOf(7, 2 * kBlock);
  harness.Ask(harness.root(), {same, same});
  ExpectRight(harness, harness.RunAll());
  EXPECT_EQ(harness.fresh(), 2 * kBlock + kBlock);
}

TEST(RequestQueue, AnswersInTheOrderOfArrival) {
  Harness harness(Queue());
  const SourceId first = harness.Ask(harness.root(), {TokensOf(1, 30), TokensOf(2, 3)});
  const SourceId second = harness.Ask(harness.root(), {TokensOf(3, 5)});
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].source, first);
  EXPECT_EQ(answers[1].index, 1U);
  EXPECT_EQ(answers[2].source, second);
}

TEST(RequestQueue, StepsAreNoLongerThanTheirLimit) {
  Harness harness(Queue(1 << 14, 100));
  harness.Ask(harness.root(), {TokensOf(1, 250), TokensOf(2, 30), TokensOf(3, 90)});
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 3U);
  ExpectRight(harness, answers);
  for (const auto size : harness.forest->counters().chunk_sizes) EXPECT_LE(size, 100);
  EXPECT_EQ(harness.fresh(), 370U);
  EXPECT_EQ(harness.forest->counters().chunks, 4U);
}

TEST(RequestQueue, EvictsTheLeastRecentlyUsed) {
  Harness harness(Queue(8 * kBlock, 64));
  const Tokens kept = TokensOf(1, 3 * kBlock + 1);
  const Tokens other = TokensOf(2, 3 * kBlock + 1);
  const Tokens third = TokensOf(3, 3 * kBlock + 1);
  harness.Ask(harness.root(), {kept, other, kept, third, kept, other});
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 6U);
  ExpectRight(harness, answers);
  // The two repeats of `kept` find its three blocks; `other` was the one to go.
  EXPECT_EQ(harness.fresh(), 4 * (3 * kBlock + 1) + 2);
  EXPECT_GT(harness.forest->counters().evictions, 0U);
}

TEST(RequestQueue, RefusesWhatNeverFits) {
  HarnessOptions options = Queue(10 * kBlock);
  options.context_tokens = 100;
  Harness harness(options);
  harness.Ask(harness.root(), {TokensOf(1, 101), TokensOf(2, 100)});
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].state, AnswerState::kTooLong);
  EXPECT_EQ(answers[0].path_tokens, 101U);
  EXPECT_EQ(answers[1].state, AnswerState::kValue);
  EXPECT_THROW(harness.forest->AddGroup({}), Error);
}

TEST(RequestQueue, ForgetsWhatIsWithdrawn) {
  Harness harness(Queue(1 << 12, 64));
  const SourceId gone = harness.Ask(harness.root(), {TokensOf(1, 200), TokensOf(2, 20)});
  const SourceId kept = harness.Ask(harness.root(), {TokensOf(3, 20)});
  harness.forest->Withdraw(gone);
  const auto answers = harness.RunAll();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].source, kept);
  EXPECT_EQ(harness.forest->pending(), 0U);
}

RC_GTEST_PROP(RequestQueueProperty, AnswersAreRightAtAnySize, ()) {
  const auto blocks = *rc::gen::inRange<std::int64_t>(8, 40);
  Harness harness(
      Queue(blocks * static_cast<std::int64_t>(kBlock), *rc::gen::inRange<std::int32_t>(1, 200)));
  std::vector<Tokens> paths;
  std::size_t asks = 0;
  for (int stem = *rc::gen::inRange(1, 5); stem > 0; --stem) {
    const NodeId node = harness.Child(
        harness.root(), TokensOf(*rc::gen::inRange<std::uint64_t>(0, 3), *rc::gen::inRange(1, 60)));
    std::vector<Tokens> leaves;
    for (int leaf = *rc::gen::inRange(0, 6); leaf > 0; --leaf) {
      leaves.push_back(
          TokensOf(*rc::gen::inRange<std::uint64_t>(10, 14), *rc::gen::inRange(1, 40)));
      paths.push_back(harness.path(node) + leaves.back());
    }
    asks += leaves.size();
    harness.Ask(node, leaves);
  }
  const auto answers = harness.RunAll();
  RC_ASSERT(answers.size() == asks);
  for (const Answer& answer : answers) RC_ASSERT(answer.value == harness.Expected(answer));
  RC_ASSERT(harness.minimum() == DistinctTokens(paths));
  RC_ASSERT(harness.fresh() >= harness.minimum());
}

}  // namespace
}  // namespace quail::infer
