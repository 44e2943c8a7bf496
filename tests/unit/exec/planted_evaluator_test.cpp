#include "exec/planted_evaluator.h"

#include <gtest/gtest.h>

#include <map>

#include "exec/function_evaluator.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

/// A model that says TRUE to all but texts with "long" in them, which fail.
class PlantedEvaluatorTest : public testing::Test {
 protected:
  PlantedEvaluatorTest()
      : model_(
            [](auto, auto arguments) {
              for (const std::string_view text : arguments) {
                if (text.find("long") != std::string_view::npos) {
                  return PlantedAnswer{Verdict::kError, 0, "too long"};
                }
              }
              return PlantedAnswer{Verdict::kTrue, 7, ""};
            },
            texts_),
        planted_(model_, answers_) {}

  TextId Id(std::string_view text) { return texts_.Intern(text); }

  std::map<std::pair<std::uint64_t, std::uint32_t>, Outcome> Outcomes() {
    std::map<std::pair<std::uint64_t, std::uint32_t>, Outcome> all;
    std::vector<Outcome> outcomes;
    while (planted_.Next(outcomes, nullptr)) {
      for (const Outcome& outcome : outcomes) all[{outcome.tag, outcome.index}] = outcome;
      outcomes.clear();
    }
    return all;
  }

  text::TextStore texts_;
  FunctionEvaluator model_;
  PlantedAnswers answers_;
  PlantedEvaluator planted_;
};

TEST_F(PlantedEvaluatorTest, ReplacesWhatAFilterAnswered) {
  answers_.Plant("good? {0}");
  const TextId yes = Id("yes");
  const TextId no = Id("no");
  const TextId failing = Id("long");
  answers_.Add("good? {0}", std::span(&yes, 1));
  answers_.Add("good? {0}", std::span(&failing, 1));
  planted_.Begin();
  const QuestionId question = planted_.Add({"good? {0}", 1, {}, plan::OnLong::kError});
  for (const TextId id : {yes, no, failing}) {
    planted_.Ask(FilterAsk{.question = question, .key = std::span(&id, 1), .tag = id.value()});
  }
  auto outcomes = Outcomes();
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ((outcomes[{yes.value(), 0}].verdict), Verdict::kTrue);
  EXPECT_EQ((outcomes[{no.value(), 0}].verdict), Verdict::kFalse);
  EXPECT_LT((outcomes[{no.value(), 0}].margin), 0);
  EXPECT_EQ((outcomes[{failing.value(), 0}].verdict), Verdict::kError);
}

TEST_F(PlantedEvaluatorTest, ReplacesPairsWhicheverSideIsTheAnchor) {
  const std::string prompt = "{0} of {1}?";
  const TextId a = Id("a");
  const std::vector<TextId> partners = {Id("p"), Id("q"), Id("r")};
  for (const bool first : {true, false}) {
    answers_ = {};
    answers_.Plant(prompt);
    answers_.Add(prompt, first ? std::vector{a, partners[1]} : std::vector{partners[1], a});
    planted_.Begin();
    const QuestionId question = planted_.Add({prompt, 2, {first, !first}, plan::OnLong::kError});
    JoinAsk ask;
    ask.question = question;
    ask.anchor_key = std::span(&a, 1);
    ask.partners = std::make_shared<const PartnerList>(PartnerList{1, partners});
    ask.subset = std::make_shared<const std::vector<std::uint32_t>>(std::vector{0U, 1U});
    ask.tag = 4;
    planted_.Ask(ask);
    auto outcomes = Outcomes();
    ASSERT_EQ(outcomes.size(), 2U);
    EXPECT_EQ((outcomes[{4, 0}].verdict), Verdict::kFalse);
    EXPECT_EQ((outcomes[{4, 1}].verdict), Verdict::kTrue);
  }
}

TEST_F(PlantedEvaluatorTest, RefusesWhatIsNotPlanted) {
  planted_.Begin();
  EXPECT_THROW(planted_.Add({"good? {0}", 1, {}, plan::OnLong::kError}), Error);
  answers_.Plant("{0} {1} {2}");
  EXPECT_THROW(answers_.Add("{0} {1} {2}", std::vector{Id("a"), Id("b"), Id("c")}), Error);
}

}  // namespace
}  // namespace quail::exec
