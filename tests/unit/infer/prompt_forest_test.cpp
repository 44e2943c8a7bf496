#include "infer/prompt_forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "forest_harness.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

std::vector<Tokens> Leaves(std::uint64_t first_name, std::size_t count, std::size_t length) {
  std::vector<Tokens> leaves;
  for (std::size_t i = 0; i < count; ++i) leaves.push_back(TokensOf(first_name + i, length));
  return leaves;
}

void ExpectRight(Harness& harness, const std::vector<Answer>& answers) {
  EXPECT_EQ(harness.backend.fault(), "");
  for (const Answer& answer : answers) {
    if (answer.state != AnswerState::kValue) continue;
    EXPECT_EQ(answer.path_tokens, harness.PathOf(answer).size());
    ASSERT_NEAR(answer.value, harness.Expected(answer), 1e-4);
  }
}

TEST(PromptForest, SamePathIsSameNode) {
  Harness h({});
  const NodeId a = h.Child(h.root(), MakeTokens({1, 2, 3}));
  EXPECT_EQ(a, h.Child(h.root(), MakeTokens({1, 2, 3})));
  EXPECT_EQ(a, h.Child(h.Child(h.root(), MakeTokens({1, 2})), MakeTokens({3})));
  EXPECT_NE(a, h.Child(h.root(), MakeTokens({1, 2, 4})));
  EXPECT_EQ(a, h.Child(a, {}));
  const Tokens first = MakeTokens({7, 8});
  const Tokens second = MakeTokens({7, 8});
  EXPECT_EQ(h.forest->Segment(first), h.forest->Segment(second));
  const Tokens document = TokensOf(5, 300);
  const Tokens copy = document;
  EXPECT_EQ(h.forest->Child(a, h.forest->Segment(document)),
            h.forest->Child(a, h.forest->Segment(copy)));
}

TEST(PromptForest, JoinComputesEachAnchorOnce) {
  Harness h({.chunk_tokens = 4096});
  const std::vector<Tokens> partners = Leaves(1000, 200, 10);
  for (std::uint64_t i = 0; i < 50; ++i) h.Ask(h.Child(h.root(), TokensOf(i, 2000)), partners);
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), 50U * 200U);
  ExpectRight(h, answers);
  EXPECT_EQ(h.fresh(), 50U * (2000 + 200 * 10));
  EXPECT_EQ(h.fresh(), h.minimum());
  EXPECT_EQ(h.forest->counters().steps[0].requested_tokens, 50U * 200U * 2010U);
  EXPECT_LE(h.forest->counters().kv_peak_tokens, 3 * 4096 + 2000);
}

TEST(PromptForest, DocumentOnceForThreeQuestions) {
  Harness h({.chunk_tokens = 2048});
  const std::vector<Tokens> questions = Leaves(5000, 3, 40);
  const NodeId head = h.Child(h.root(), MakeTokens({1, 2, 3}));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    h.Ask(h.Child(head, TokensOf(i, 20 + i % 400)), questions);
  }
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), 3000U);
  ExpectRight(h, answers);
  EXPECT_EQ(h.fresh(), h.minimum());
  EXPECT_EQ(h.recomputed(), 0U);
}

TEST(PromptForest, EqualTextsOfTwoSourcesAreComputedOnce) {
  Harness h({.chunk_tokens = 256});
  for (int alias = 0; alias < 2; ++alias) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      h.Ask(h.Child(h.root(), TokensOf(i, 100)),
            {TokensOf(900 + static_cast<std::uint64_t>(alias), 30)});
    }
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.fresh(), 20U * (100 + 2 * 30));
}

TEST(PromptForest, WhatNobodyReadsAgainWritesNoKv) {
  Harness h({.chunk_tokens = 1024});
  for (std::uint64_t i = 0; i < 10; ++i) {
    h.Ask(h.Child(h.root(), TokensOf(i, 50)), {TokensOf(99, 20)});
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.backend.kv_writes(), 0U);
}

// Case 58: retained KV must not starve admission. Three filters in a chain, each survivor's next
// question asked when its answer is there, KV = 1.2 x what is retained at a time.
TEST(PromptForest, Case58ChainOfFiltersKeepsChunksFull) {
  constexpr std::int32_t kChunk = 2048;
  Harness h({.kv_tokens = 4000 * 100 * 12 / 10 / 10, .chunk_tokens = kChunk});
  std::map<std::uint32_t, std::pair<NodeId, int>> documents;
  const auto ask = [&](NodeId document, int question) {
    const SourceId source =
        h.Ask(document, {TokensOf(7000 + static_cast<std::uint64_t>(question), 45)});
    documents[source.value()] = {document, question};
  };
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const NodeId document = h.Child(h.root(), TokensOf(i, 60 + i % 80));
    h.forest->Expect(document, 0.8);
    ask(document, 0);
  }
  std::size_t answered = 0;
  do {
    for (const Answer& answer : h.Step()) {
      ++answered;
      const auto [document, question] = documents[answer.source.value()];
      const bool pass = answer.value > -0.7F && question < 2;
      if (pass) ask(document, question + 1);
      h.forest->Expect(document, pass && question == 0 ? 0.8 : 0);
    }
  } while (h.more);
  EXPECT_EQ(h.backend.fault(), "");
  EXPECT_GT(answered, 8000U);
  std::vector<std::int32_t> sizes = h.forest->counters().chunk_sizes;
  sizes.pop_back();
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  EXPECT_GE(sizes[sizes.size() / 2], kChunk * 9 / 10);
  EXPECT_EQ(h.recomputed(), 0U);
  EXPECT_EQ(h.forest->counters().kv_held_tokens, 0);
}

TEST(PromptForest, FilterStreamsIntoJoinWithKvHeld) {
  Harness h({.kv_tokens = 20000, .chunk_tokens = 2048});
  std::map<std::uint32_t, NodeId> filters;
  const std::vector<Tokens> partners = Leaves(9000, 30, 12);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const NodeId document = h.Child(h.root(), TokensOf(i, 250));
    h.forest->Expect(document, 0.3);
    filters[h.Ask(document, {TokensOf(8000, 50)}, {.step = 0}).value()] = document;
  }
  std::size_t pairs = 0;
  do {
    for (const Answer& answer : h.Step()) {
      const auto filter = filters.find(answer.source.value());
      if (filter == filters.end()) {
        ++pairs;
        continue;
      }
      if (answer.value > 0.4F) {
        h.Ask(h.Child(filter->second, TokensOf(8500, 36)), partners, {.step = 1});
      }
      h.forest->Expect(filter->second, 0);
    }
  } while (h.more);
  EXPECT_GT(pairs, 1000U);
  EXPECT_EQ(h.backend.fault(), "");
  EXPECT_EQ(h.recomputed(), 0U);
  EXPECT_EQ(h.fresh(), h.minimum());
  EXPECT_EQ(h.forest->counters().evictions, 0U);
}

TEST(PromptForest, SecondQueryReadsKvOfTheFirst) {
  Harness h({.kv_tokens = 100000, .chunk_tokens = 1024});
  const auto query = [&](std::uint64_t question) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const NodeId document = h.Child(h.root(), TokensOf(i, 500));
      h.forest->Expect(document, 0.5);
      h.Ask(document, {TokensOf(question, 30)});
    }
    ExpectRight(h, h.RunAll());
    for (std::uint64_t i = 0; i < 40; ++i) h.forest->Expect(h.Child(h.root(), TokensOf(i, 500)), 0);
  };
  query(7000);
  h.forest->ResetCounters();
  query(7001);
  EXPECT_EQ(h.fresh(), 40U * 30);
  EXPECT_EQ(h.forest->counters().minimum_tokens, 40U * 530);
}

// Nobody said that more would be asked about the documents: what was computed of them is there all
// the same, as far as it fits; of the rest the oldest goes first.
TEST(PromptForest, ALaterQueryReadsWhatIsKeptForLater) {
  const auto run = [](std::int64_t kv_tokens, bool keep) {
    Harness h({.kv_tokens = kv_tokens, .chunk_tokens = 1024});
    h.forest->KeepForLater(keep);
    for (const std::uint64_t question : {7000, 7001, 7002}) {
      h.forest->ResetCounters();
      for (std::uint64_t i = 0; i < 40; ++i) {
        h.Ask(h.Child(h.root(), TokensOf(i, 500)), {TokensOf(question, 30)});
      }
      ExpectRight(h, h.RunAll());
      EXPECT_EQ(h.forest->counters().kv_held_tokens, 0);
      EXPECT_EQ(h.forest->counters().evictions, 0U);
    }
    return h.fresh();
  };
  EXPECT_EQ(run(100000, true), 40U * 30);
  EXPECT_GT(run(100000, false), 5 * 40U * 30);
  // Ten fit: served first, each makes place for another.
  EXPECT_LE(run(10 * 530, true), 40U * 530);
}

TEST(PromptForest, DocumentLongerThanChunkAndAllOfTheArena) {
  Harness h({.kv_tokens = 1000, .chunk_tokens = 64});
  h.Ask(h.Child(h.root(), TokensOf(1, 900)), {TokensOf(2, 100), TokensOf(3, 100), TokensOf(4, 7)});
  h.Ask(h.Child(h.root(), TokensOf(5, 990)), {TokensOf(6, 10)});
  h.Ask(h.root(), {TokensOf(7, 1000)});
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), 5U);
  ExpectRight(h, answers);
}

TEST(PromptForest, TooLongPathIsAnAnswerAndHarmsNobody) {
  Harness h({.kv_tokens = 500, .chunk_tokens = 128, .context_tokens = 400});
  h.Ask(h.Child(h.root(), TokensOf(1, 395)), {TokensOf(2, 5), TokensOf(3, 6), TokensOf(4, 2)});
  h.Ask(h.Child(h.root(), TokensOf(5, 5000)), {TokensOf(6, 10)});
  h.Ask(h.Child(h.root(), TokensOf(8, 50)), {TokensOf(6, 10)});
  const std::vector<Answer> answers = h.RunAll();
  ExpectRight(h, answers);
  std::map<std::uint32_t, AnswerState> by_length;
  for (const Answer& answer : answers) by_length[answer.path_tokens] = answer.state;
  EXPECT_EQ(by_length, (std::map<std::uint32_t, AnswerState>{{60, AnswerState::kValue},
                                                             {397, AnswerState::kValue},
                                                             {400, AnswerState::kValue},
                                                             {401, AnswerState::kTooLong},
                                                             {5010, AnswerState::kTooLong}}));
  EXPECT_EQ(h.fresh(), 395U + 5 + 2 + 60);
}

TEST(PromptForest, SnapshotsThatExtendEachOtherShareTheirPrefix) {
  Harness h({.kv_tokens = 100000, .chunk_tokens = 4096});
  std::vector<Tokens> paths;
  const Tokens question = TokensOf(99, 75);
  for (std::uint64_t t = 0; t < 8; ++t) {
    Tokens trace = TokensOf(12345, 1200);
    for (std::uint64_t turn = 0; turn < 5; ++turn) {
      trace = trace + TokensOf(100 * t + turn, 700);
      h.Ask(h.Child(h.Child(h.root(), MakeTokens({1, 2})), trace), {question});
      paths.push_back(MakeTokens({1, 2}) + trace + question);
    }
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.minimum(), DistinctTokens(paths));
  EXPECT_EQ(h.fresh(), h.minimum());
}

// Agent traces with KV for two trajectories: the tree is walked depth-first, whatever the order of
// the rows.
TEST(PromptForest, TracesInAnyOrderCostTheirDistinctPrefixes) {
  Harness h({.kv_tokens = 2 * 14400 + 2 * 4096, .chunk_tokens = 4096});
  std::vector<Tokens> paths;
  const Tokens head = TokensOf(1, 1200);
  const Tokens question = TokensOf(2, 75);
  for (std::uint64_t row = 0; row < 40 * 5; ++row) {
    const std::uint64_t shuffled = row * 77 % 200;
    const std::uint64_t trajectory = shuffled / 5;
    Tokens trace = head;
    for (std::uint64_t turn = 0; turn <= shuffled % 5; ++turn) {
      trace = trace + TokensOf(1000 + trajectory * 10 + turn, 2600);
    }
    h.Ask(h.Child(h.Child(h.root(), MakeTokens({1, 2})), trace), {question});
    paths.push_back(MakeTokens({1, 2}) + trace + question);
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.minimum(), DistinctTokens(paths));
  EXPECT_LE(static_cast<double>(h.fresh()), 1.02 * static_cast<double>(h.minimum()));
}

// The label that opens every document is one node for short documents and is computed with each
// long one.
TEST(PromptForest, ShortHeadsAreRepeatedBeforeLongDocuments) {
  const auto fresh = [](std::size_t length) {
    Harness h({.chunk_tokens = 8192});
    const NodeId head = h.Child(h.root(), MakeTokens({1, 2, 3}));
    for (std::uint64_t i = 0; i < 4; ++i)
      h.Ask(h.Child(head, TokensOf(i, length)), {TokensOf(9, 40)});
    ExpectRight(h, h.RunAll());
    EXPECT_EQ(h.minimum(), 3 + 4 * (length + 40));
    return h.fresh();
  };
  EXPECT_EQ(fresh(300), 3U + 4 * 340);
  EXPECT_EQ(fresh(1300), 4U * (3 + 1340));
}

TEST(PromptForest, CommonBeginningsOfPartnersAreComputedOnce) {
  std::vector<Tokens> partners;
  for (std::uint64_t i = 0; i < 64; ++i)
    partners.push_back(TokensOf(i % 4, 12) + TokensOf(100 + i, 4));
  const auto fresh = [&](RadixMode radix) {
    Harness h({.chunk_tokens = 4096, .radix = radix});
    h.Ask(h.Child(h.root(), TokensOf(1, 100)), partners);
    ExpectRight(h, h.RunAll());
    return h.fresh();
  };
  EXPECT_EQ(fresh(RadixMode::kNever), 100U + 64 * 16);
  EXPECT_EQ(fresh(RadixMode::kWherePays), 100U + 4 * 12 + 64 * 4);
  EXPECT_EQ(fresh(RadixMode::kAlways), 100U + 4 * 12 + 64 * 4);
}

TEST(PromptForest, QuestionsThatBeginAlikeShareTheirHead) {
  Harness h({.chunk_tokens = 4096});
  const Tokens head = TokensOf(1, 18);
  h.Ask(h.Child(h.root(), TokensOf(2, 300)),
        {head + TokensOf(3, 33), head + TokensOf(4, 27), head + TokensOf(5, 31)});
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.fresh(), 300U + 18 + 33 + 27 + 31);
}

TEST(PromptForest, LabelLikelihoods) {
  for (const RadixMode radix : {RadixMode::kNever, RadixMode::kWherePays, RadixMode::kAlways}) {
    for (const std::int32_t chunk : {8, 64, 1024}) {
      Harness h({.kv_tokens = 4000, .chunk_tokens = chunk, .radix = radix});
      const Tokens cue = MakeTokens({5});
      for (std::uint64_t i = 0; i < 5; ++i) {
        h.Ask(h.Child(h.root(), TokensOf(i, 100)),
              {cue + TokensOf(50, 3), cue + TokensOf(50, 3) + TokensOf(51, 20), cue,
               cue + TokensOf(52, 1), cue + TokensOf(50, 3) + TokensOf(53, 40)},
              {.readout = ReadoutKind::kLogProbability});
      }
      const std::vector<Answer> answers = h.RunAll();
      EXPECT_EQ(answers.size(), 25U);
      ExpectRight(h, answers);
    }
  }
}

// Cases 28 and 29: labels that begin alike, one the beginning of another, are scored whole, by the
// sum over their own tokens: going on never makes a label likelier.
TEST(PromptForest, Case28And29LabelsThatBeginAlikeAreScoredWholeByTheirSum) {
  for (const RadixMode radix : {RadixMode::kNever, RadixMode::kWherePays, RadixMode::kAlways}) {
    Harness h({.radix = radix});
    const Tokens cue = MakeTokens({5});
    const Tokens bad = cue + TokensOf(50, 1);
    std::vector<Tokens> labels = {bad};
    for (std::uint64_t i = 0; i < 12; ++i) labels.push_back(labels.back() + TokensOf(60 + i, 1));
    labels.push_back(bad + TokensOf(80, 2));
    h.Ask(h.Child(h.root(), TokensOf(1, 40)), labels, {.readout = ReadoutKind::kLogProbability});
    const std::vector<Answer> answers = h.RunAll();
    ASSERT_EQ(answers.size(), labels.size());
    ExpectRight(h, answers);
    std::map<std::uint64_t, float> score;
    for (const Answer& answer : answers) score[answer.index] = answer.value;
    for (std::uint64_t i = 0; i < 12; ++i) EXPECT_LT(score[i + 1], score[i]) << i;
    EXPECT_NE(score[13], score[2]) << "of equal length, with another second token";
  }
}

TEST(PromptForest, GroupStopsInWaves) {
  CountingOptions counting{.validate = true, .margin = [](std::uint64_t) { return 1.0F; }};
  Harness h({.chunk_tokens = 4096}, counting);
  std::vector<GroupId> groups;
  const std::vector<Tokens> partners = Leaves(100, 1000, 8);
  for (std::uint64_t i = 0; i < 20; ++i) {
    groups.push_back(h.forest->AddGroup({.enough = 1, .selectivity = 0.25}));
    h.Ask(h.Child(h.root(), TokensOf(i, 50)), partners, {.group = groups.back()});
  }
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(h.backend.fault(), "");
  EXPECT_EQ(answers.size(), 20U * 4);
  for (const GroupId group : groups) {
    const GroupState state = h.forest->group(group);
    EXPECT_TRUE(state.stopped);
    EXPECT_EQ(state.yes, 4U);
    EXPECT_EQ(state.answered, 4U);
    EXPECT_EQ(state.dropped, 996U);
  }
  EXPECT_EQ(h.forest->pending(), 0U);
}

TEST(PromptForest, GroupWithoutAnyTrueAsksAll) {
  CountingOptions counting{.validate = true, .margin = [](std::uint64_t) { return -1.0F; }};
  Harness h({.kv_tokens = 600, .chunk_tokens = 128}, counting);
  const GroupId group = h.forest->AddGroup({.enough = 3, .selectivity = 0.5});
  for (std::uint64_t i = 0; i < 9; ++i) {
    h.Ask(h.Child(h.root(), TokensOf(i, 50)), Leaves(100, i * 7, 8), {.group = group}, i % 3);
  }
  EXPECT_EQ(h.RunAll().size(), 7U * 36);
  EXPECT_FALSE(h.forest->group(group).stopped);
  EXPECT_EQ(h.forest->group(group).answered, 7U * 36);
}

TEST(PromptForest, WithdrawDropsWhatIsBelow) {
  Harness h({.chunk_tokens = 128});
  const NodeId first = h.Child(h.root(), TokensOf(1, 60));
  const NodeId below = h.Child(first, TokensOf(2, 60));
  h.Ask(below, Leaves(100, 500, 10));
  const SourceId second = h.Ask(first, Leaves(200, 500, 10));
  const SourceId other = h.Ask(h.root(), Leaves(300, 50, 10));
  h.Step();
  h.forest->Withdraw(first);
  h.forest->Withdraw(second);
  std::size_t others = 0;
  for (const Answer& answer : h.RunAll()) others += answer.source == other ? 1U : 0U;
  EXPECT_GT(others, 20U);
  EXPECT_LT(h.forest->counters().steps[0].asks, 150U);
  EXPECT_EQ(h.forest->counters().kv_held_tokens, 0);
}

TEST(PromptForest, HigherPriorityGoesFirst) {
  Harness h({.chunk_tokens = 128});
  h.Ask(h.Child(h.root(), TokensOf(1, 60)), Leaves(100, 50, 10));
  const SourceId urgent =
      h.Ask(h.Child(h.root(), TokensOf(2, 60)), Leaves(100, 50, 10), {.priority = 5});
  const std::vector<Answer> answers = h.RunAll();
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(answers[i].source, urgent);
}

TEST(PromptForest, CancelReturnsAllKvAndLeavesAWorkingForest) {
  for (int round = 0; round < 30; ++round) {
    Harness h({.kv_tokens = 3000, .chunk_tokens = 256});
    base::CancelFlag cancel;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const NodeId document = h.Child(h.root(), TokensOf(i, 300));
      h.forest->Expect(document, 0.5);
      h.Ask(document, Leaves(100, 40, 9));
    }
    for (int step = 0; step < round; ++step) h.Step(&cancel);
    cancel.Cancel();
    try {
      h.Step(&cancel);
      FAIL() << "not cancelled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
    }
    EXPECT_EQ(h.forest->pending(), 0U);
    EXPECT_EQ(h.forest->counters().kv_held_tokens, 0);
    h.Ask(h.Child(h.root(), TokensOf(77, 2900)), {TokensOf(5, 100)});
    const std::vector<Answer> answers = h.RunAll();
    EXPECT_EQ(answers.size(), 1U);
    ExpectRight(h, answers);
  }
}

TEST(PromptForest, AThousandQueriesOfWhichEveryThirdIsCancelled) {
  Harness harness({.kv_tokens = 2048, .chunk_tokens = 128});
  const std::vector<Tokens> leaves = {TokensOf(900, 7), TokensOf(901, 9), TokensOf(902, 8)};
  for (std::uint64_t query = 0; query < 1000; ++query) {
    for (std::uint64_t document = query % 5; document < 40; document += 5) {
      const std::size_t length = 20 + 3 * document;
      harness.Ask(harness.Child(harness.root(), TokensOf(document, length)), leaves);
    }
    if (query % 3 == 0) {
      base::CancelFlag cancel;
      for (std::uint64_t step = 0; step < query % 7; ++step) harness.Step(&cancel);
      cancel.Cancel();
      EXPECT_THROW(harness.Step(&cancel), Error);
    } else {
      const std::vector<Answer> answers = harness.RunAll();
      ASSERT_EQ(answers.size(), 8U * leaves.size());
      for (const Answer& answer : answers) EXPECT_EQ(answer.value, harness.Expected(answer));
    }
    ASSERT_EQ(harness.forest->pending(), 0U);
    ASSERT_EQ(harness.forest->counters().kv_held_tokens, 0) << "after query " << query;
  }
  EXPECT_EQ(harness.backend.fault(), "");
}

TEST(PromptForest, DeviceFaultEndsTheWorkNotTheForest) {
  Harness h({.kv_tokens = 3000, .chunk_tokens = 256},
            CountingOptions{.validate = true, .failing_chunk = 3});
  for (std::uint64_t i = 0; i < 20; ++i)
    h.Ask(h.Child(h.root(), TokensOf(i, 300)), Leaves(1, 9, 9));
  EXPECT_THROW(h.RunAll(), Error);
  EXPECT_EQ(h.forest->pending(), 0U);
  h.Ask(h.Child(h.root(), TokensOf(1, 300)), Leaves(1, 9, 9));
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), 9U);
  ExpectRight(h, answers);
}

// Case 32.
TEST(PromptForest, NonFiniteAnswerIsAStateOfThatAskAlone) {
  const std::uint64_t bad = PathHash(TokensOf(1, 30) + TokensOf(2, 5));
  Harness h({}, CountingOptions{.validate = true, .margin = [&](std::uint64_t path) {
                                  return path == bad ? NAN : CountingMargin(path);
                                }});
  h.Ask(h.Child(h.root(), TokensOf(1, 30)), {TokensOf(2, 5), TokensOf(3, 5)});
  const std::vector<Answer> answers = h.RunAll();
  ASSERT_EQ(answers.size(), 2U);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.state, answer.index == 0 ? AnswerState::kNonFinite : AnswerState::kValue);
  }
  ExpectRight(h, answers);
}

// A chunk takes on no more than the arena can keep beside what the chunk reads: nothing is computed
// to be thrown away.
TEST(PromptForest, ChunkTakesOnOnlyWhatTheArenaCanKeep) {
  Harness h({.kv_tokens = 700, .chunk_tokens = 900});
  for (std::uint64_t i = 0; i < 3; ++i) {
    h.Ask(h.Child(h.root(), TokensOf(i, 600)), Leaves(1000, 100, 10));
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.recomputed(), 0U);
  EXPECT_EQ(h.fresh(), h.minimum());
}

// Case 46: what is cached changes nothing. The same questions with KV kept, with hardly any KV, and
// asked twice.
TEST(PromptForest, Case46ColdAndWarmPrefixesGiveEqualAnswers) {
  std::map<std::pair<std::size_t, std::uint64_t>, float> first;
  for (const std::int64_t kv : {100000, 700}) {
    Harness h({.kv_tokens = kv, .chunk_tokens = 256});
    for (int round = 0; round < 2; ++round) {
      for (std::uint64_t i = 0; i < 60; ++i) {
        const NodeId document = h.Child(h.root(), TokensOf(i, 10 + i * 10));
        h.forest->Expect(document, 0.5);
        h.Ask(document, {TokensOf(900, 20), TokensOf(901, 30)});
      }
      const std::vector<Answer> answers = h.RunAll();
      EXPECT_EQ(answers.size(), 120U);
      ExpectRight(h, answers);
      for (const Answer& answer : answers) {
        const auto key = std::pair(h.PathOf(answer).size(), answer.index);
        EXPECT_EQ(first.emplace(key, answer.value).first->second, answer.value);
      }
    }
  }
}

// Case 49: KV is found by content alone; another text of the same length and place is another path.
TEST(PromptForest, Case49OtherTextIsComputedAnew) {
  Harness h({.chunk_tokens = 256});
  for (const std::uint64_t version : {0, 1}) {
    h.forest->ResetCounters();
    for (std::uint64_t i = 0; i < 10; ++i) {
      const NodeId document = h.Child(h.root(), TokensOf(100 * version + i, 50));
      h.forest->Expect(document, 0.9);
      h.Ask(document, {TokensOf(900, 20)});
    }
    ExpectRight(h, h.RunAll());
    EXPECT_EQ(h.fresh(), 10U * 70);
  }
}

// Case 59: very short answers, a shared prefix and documents of 1 to 30,000 tokens, some longer
// than a chunk.
TEST(PromptForest, Case59LengthsFromOneToThirtyThousand) {
  Harness h({.kv_tokens = 64000, .chunk_tokens = 4096, .context_tokens = 40960});
  const NodeId head = h.Child(h.root(), TokensOf(1, 500));
  std::size_t asks = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::size_t length = 1 + i * i * i * 30000 / (199ULL * 199 * 199);
    h.Ask(h.Child(head, TokensOf(100 + i, length)), {MakeTokens({7})});
    ++asks;
  }
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), asks);
  ExpectRight(h, answers);
  EXPECT_EQ(h.fresh(), h.minimum());
}

// Case 61: borders are offsets: a document that contains the question's own tokens is a document.
TEST(PromptForest, Case61DocumentsThatContainTheDelimiter) {
  Harness h({.chunk_tokens = 64});
  const Tokens cue = MakeTokens({11, 12, 13});
  h.Ask(h.Child(h.root(), cue + cue), {cue, cue + cue, MakeTokens({11})});
  h.Ask(h.Child(h.root(), cue), {cue, cue + cue + cue});
  const std::vector<Answer> answers = h.RunAll();
  EXPECT_EQ(answers.size(), 5U);
  ExpectRight(h, answers);
}

// An anchor whose join stops early is not read to its end, and waves keep chunks full over many
// anchors.
TEST(PromptForest, WavesOverManyGroupsKeepChunksFull) {
  constexpr std::int32_t kChunk = 2048;
  Harness h({.kv_tokens = 40000, .chunk_tokens = kChunk});
  const std::vector<Tokens> partners = Leaves(50000, 300, 12);
  for (std::uint64_t i = 0; i < 400; ++i) {
    const GroupId group = h.forest->AddGroup({.enough = 1, .selectivity = 0.3});
    h.Ask(h.Child(h.root(), TokensOf(i, 60)), partners, {.group = group});
  }
  const std::vector<Answer> answers = h.RunAll();
  ExpectRight(h, answers);
  EXPECT_LT(answers.size(), 400U * 12);
  EXPECT_GE(answers.size(), 400U * 4);
  std::vector<std::int32_t> sizes = h.forest->counters().chunk_sizes;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                   sizes.end());
  EXPECT_GE(sizes[sizes.size() / 2], kChunk * 9 / 10);
  EXPECT_EQ(h.recomputed(), 0U);
}

// Whatever the order of arrival: filters and joins over the same documents, two frames each.
TEST(PromptForest, RunsOverOneAnchorAreAdjacent) {
  Harness h({.chunk_tokens = 1024});
  const std::vector<Tokens> partners = Leaves(1000, 40, 10);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 12; ++i) {
      const NodeId document = h.Child(h.root(), TokensOf(i, 300));
      h.forest->Expect(document, 1);
      h.Ask(document, Leaves(2000 + static_cast<std::uint64_t>(round), 1, 30));
      h.Ask(h.Child(document, TokensOf(500 + i % 2, 36)), partners);
    }
  }
  ExpectRight(h, h.RunAll());
  EXPECT_EQ(h.backend.scattered_runs(), 0U);
}

TEST(PromptForest, ClearForgetsAll) {
  Harness h({});
  h.Ask(h.Child(h.root(), TokensOf(1, 30)), {TokensOf(2, 5)});
  h.Step();
  h.forest->Clear();
  EXPECT_EQ(h.forest->pending(), 0U);
  h.Ask(h.Child(h.root(), TokensOf(1, 30)), {TokensOf(2, 5)});
  EXPECT_EQ(h.RunAll().size(), 1U);
}

}  // namespace
}  // namespace quail::infer
