#include "exec/checkpoint_evaluator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "exec/function_evaluator.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

/// One ask, by everything that its verdict depends on.
struct AskedOnce {
  Question question{"{0} before {1}", 2, {true, false}, plan::OnLong::kHead};
  std::vector<std::string> arguments = {"one", "two"};
  std::string decider = "model f32";
  std::int64_t longest_prompt = 100;
};

class CheckpointEvaluatorTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  /// Verdicts that came from the file when this was asked; what it decided is in the file.
  std::uint64_t Reused(const AskedOnce& ask, Verdict verdict = Verdict::kTrue) {
    FunctionEvaluator model(
        [&](auto, auto) {
          return PlantedAnswer{verdict, 1, "planted"};
        },
        texts_);
    const auto file = CheckpointFile::Open(path_);
    CheckpointEvaluator kept(model, *file, texts_, ask.decider, ask.longest_prompt);
    kept.Begin();
    const QuestionId question = kept.Add(ask.question);
    std::vector<TextId> anchor;
    auto partners = std::make_shared<PartnerList>();
    for (std::size_t i = 0; i < ask.arguments.size(); ++i) {
      const TextId id = texts_.Intern(ask.arguments[i]);
      const bool partner = !ask.question.is_anchor.empty() && !ask.question.is_anchor[i];
      (partner ? partners->keys : anchor).push_back(id);
    }
    partners->width = partners->keys.size();
    if (ask.question.is_anchor.empty()) {
      kept.Ask(FilterAsk{.question = question, .key = anchor, .tag = 1});
    } else {
      kept.Ask(JoinAsk{.question = question,
                       .anchor_key = anchor,
                       .partners = partners,
                       .subset = nullptr,
                       .tag = 1});
    }
    std::vector<Outcome> outcomes;
    while (kept.Next(outcomes, nullptr)) {
    }
    EXPECT_EQ(outcomes.size(), 1U);
    return kept.reused();
  }

  const std::string path_ = testing::TempDir() + "checkpoint_evaluator_test.bin";
  text::TextStore texts_;
};

TEST_F(CheckpointEvaluatorTest, TheSameAskIsAnsweredFromTheFile) {
  EXPECT_EQ(Reused({}), 0U);
  EXPECT_EQ(Reused({}), 1U);
}

TEST_F(CheckpointEvaluatorTest, FailuresAreAskedAgain) {
  EXPECT_EQ(Reused({}, Verdict::kError), 0U);
  EXPECT_EQ(Reused({}, Verdict::kNull), 0U);
  EXPECT_EQ(Reused({}), 1U);
}

TEST_F(CheckpointEvaluatorTest, WhateverAVerdictDependsOnIsInItsKey) {
  const std::vector<std::pair<const char*, std::function<void(AskedOnce&)>>> changes = {
      {"template", [](AskedOnce& ask) { ask.question.prompt = "{0} behind {1}"; }},
      {"anchor",
       [](AskedOnce& ask) {
         ask.question.is_anchor = {false, true};
       }},
      {"filter layout", [](AskedOnce& ask) { ask.question.is_anchor = {}; }},
      {"on_long", [](AskedOnce& ask) { ask.question.on_long = plan::OnLong::kTail; }},
      {"what fits", [](AskedOnce& ask) { ask.longest_prompt = 99; }},
      {"first argument", [](AskedOnce& ask) { ask.arguments[0] = "ones"; }},
      {"second argument", [](AskedOnce& ask) { ask.arguments[1] = ""; }},
      {"order",
       [](AskedOnce& ask) {
         ask.arguments = {"two", "one"};
       }},
      {"where one ends",
       [](AskedOnce& ask) {
         ask.arguments = {"onet", "wo"};
       }},
      {"width",
       [](AskedOnce& ask) {
         ask.question.width = 3;
         ask.question.is_anchor = {true, false, false};
         ask.arguments = {"one", "two", "two"};
       }},
      {"model, adapter or numeric mode", [](AskedOnce& ask) { ask.decider = "model bf16"; }},
      {"a decider that ends like a template", [](AskedOnce& ask) { ask.decider += "|2|ap"; }}};
  EXPECT_EQ(Reused({}), 0U);
  for (const auto& [name, change] : changes) {
    AskedOnce changed;
    change(changed);
    EXPECT_EQ(Reused(changed), 0U) << name;
    EXPECT_EQ(Reused(changed), 1U) << name;
  }
  EXPECT_EQ(Reused({}), 1U);
}

TEST_F(CheckpointEvaluatorTest, WhereTextsAreNotCutTheirRoomDoesNotMatter) {
  AskedOnce ask;
  ask.question.on_long = plan::OnLong::kError;
  EXPECT_EQ(Reused(ask), 0U);
  ask.longest_prompt = 7;
  EXPECT_EQ(Reused(ask), 1U);
}

TEST_F(CheckpointEvaluatorTest, AnotherProcessMayNotWriteBetween) {
  const auto file = CheckpointFile::Open(path_);
  EXPECT_THROW(CheckpointFile::Open(path_), Error);
}

}  // namespace
}  // namespace quail::exec
