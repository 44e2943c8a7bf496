#include "plan/explain.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace quail::plan {
namespace {

PhysicalPlan FilterThenJoin() {
  PhysicalPlan plan;
  plan.relations = {{RelationId(0), "customers", "m0", "", {"t0"}},
                    {RelationId(1), "products", "m1", "", {"t1"}}};
  Call filter;
  filter.id = CallId(0);
  filter.function = "AI_FILTER";
  filter.prompt = "Is the customer rich? {0}";
  filter.arguments = {{RelationId(0), "t0", "c.profile"}};
  Call join = filter;
  join.id = CallId(1);
  join.prompt = "{0} might buy this:\n{1} " + std::string(200, 'x');
  join.arguments.push_back({RelationId(1), "t1", "p.description"});
  plan.calls = {filter, join};
  plan.steps.emplace_back(AskFilterStep{RelationId(0), {{CallId(0), false}}, 1});
  plan.steps.emplace_back(AskJoinStep{RelationId(0), RelationId(1), {{CallId(1), true}}, ""});
  StepEstimate first{"filter customers", 60, 60, 0.5, "hint", 21000, 21000, 0.25, 0.5, ""};
  StepEstimate second{
      "join customers x products", 750, 750, 0.05, "default", 123456, 450000, 0.0021, 4,
      "2 s, anchor products 31 s"};
  plan.estimates = {first, second};
  plan.notices = {"a notice"};
  return plan;
}

TEST(Explain, TextHasALineAStepInAlignedColumns) {
  const std::string text =
      ExplainText(FilterThenJoin(), {"SmolLM2", "CPU", "True / False", 100000000});
  EXPECT_EQ(
      text.substr(0, text.find("     NOT")),
      "model SmolLM2, device CPU, answers True / False, at most 100.0M pairs\n"
      "total 810 asks, 750 pairs, 144.5k fresh tokens (471.0k requested), speed of light 252 ms, "
      "predicted 4.5 s\n"
      "note: a notice\n"
      "#  step                       rows  asks   selectivity   fresh  requested   light  "
      "predicted\n"
      "1  filter customers             60    60      0.5 hint   21.0k      21.0k  250 ms     500 "
      "ms\n"
      "     AI_FILTER \"Is the customer rich? {0}\" <- c.profile\n"
      "     layout filter, KV of what passes is kept for step 2\n"
      "2  join customers x products   750   750  0.05 default  123.5k     450.0k  2.1 ms        4 "
      "s\n")
      << text;
  EXPECT_NE(text.find("anchor customers (2 s, anchor products 31 s)"), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
}

TEST(Explain, AnalyzePutsActualFiguresBesideTheEstimates) {
  std::vector<StepActual> actual(2);
  actual[1] = {700, 650, 40, 600, 5, 5, 120000, 119000, 2, 1};
  const std::string text = ExplainText(FilterThenJoin(), {"m", "d", "", std::nullopt}, actual);
  EXPECT_NE(
      text.find("actual: 700 asked, 650 distinct, 40 TRUE, 600 FALSE, 5 NULL, 5 error, 120.0k "
                "fresh tokens (1000 regret)"),
      std::string::npos)
      << text;
}

TEST(Explain, WithoutARateNothingIsCalledTheSpeedOfLight) {
  std::vector<StepActual> actual(2);
  actual[1] = {700, 650, 40, 600, 5, 5, 120000, 119000, 0.5, 1};
  const ExplainHead head{"m", "d", "", std::nullopt, "not calibrated"};
  const std::string text = ExplainText(FilterThenJoin(), head, actual);
  EXPECT_NE(text.find("speed of light not calibrated, predicted 4.5 s"), std::string::npos) << text;
  EXPECT_EQ(text.find("% of light"), std::string::npos) << text;
  EXPECT_EQ(text.find("250 ms"), std::string::npos) << text;
  EXPECT_EQ(ExplainJson(FilterThenJoin(), head).find("roofline"), std::string::npos);
}

TEST(Explain, JsonHasEveryStep) {
  const auto json = nlohmann::json::parse(ExplainJson(FilterThenJoin(), {"m", "d", "", 5}));
  EXPECT_EQ(json["total"]["asks"], 810);
  EXPECT_EQ(json["total"]["pairs"], 750);
  ASSERT_EQ(json["steps"].size(), 2U);
  EXPECT_EQ(json["steps"][0]["kind"], "filter");
  EXPECT_EQ(json["steps"][0]["feeds"], 1);
  EXPECT_EQ(json["steps"][1]["anchor"], "customers");
  EXPECT_EQ(json["steps"][1]["calls"][0]["negated"], true);
  EXPECT_EQ(json["steps"][1]["selectivity"]["from"], "default");
}

}  // namespace
}  // namespace quail::plan
