#include "session/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace quail::session {
namespace {

RunReport::Step Step(std::uint64_t asked, std::uint64_t yes, std::uint64_t fresh) {
  RunReport::Step step;
  step.name = "filter t";
  step.counters.kind = "filter";
  step.counters.tables = {"t"};
  step.counters.asked = asked;
  step.counters.distinct = asked;
  step.counters.yes = yes;
  step.counters.no = asked - yes;
  step.counters.rows_in = asked;
  step.counters.rows_out = yes;
  step.counters.tokens = exec::TokenCounters{2 * fresh, fresh, 0};
  return step;
}

TEST(RunReport, AddsUpItsSteps) {
  RunReport report;
  report.steps = {Step(10, 4, 100), Step(4, 1, 50)};
  report.minimum_tokens = 140;
  report.seconds["model"] = 2;
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["calls"]["asked"], 14);
  EXPECT_EQ(json["calls"]["true"], 5);
  EXPECT_EQ(json["calls"]["false"], 9);
  EXPECT_EQ(json["tokens"]["requested"], 300);
  EXPECT_EQ(json["tokens"]["fresh"], 150);
  EXPECT_EQ(json["tokens"]["cached"], 150);
  EXPECT_EQ(json["tokens"]["regret"], 10);
  EXPECT_EQ(json["rates"]["fresh_tokens_per_s"], 75);
  EXPECT_EQ(json["steps"][0]["selectivity"]["observed"], 0.4);
}

// bug_80
TEST(RunReport, SaysLessOfTheSpeedOfLightWhereTheModelTookLonger) {
  RunReport report;
  report.steps = {Step(10, 4, 100)};
  report.roofline_seconds = 1;
  report.seconds["model"] = 2;
  EXPECT_EQ(nlohmann::json::parse(report.ToJson())["roofline"]["fraction"], 0.5);
  report.seconds["model"] = 4;
  EXPECT_EQ(nlohmann::json::parse(report.ToJson())["roofline"]["fraction"], 0.25);
}

TEST(RunReport, LeavesOutWhatWasNotMeasured) {
  const auto json = nlohmann::json::parse(RunReport{}.ToJson());
  for (const char* name : {"rows", "model", "device", "rates", "roofline", "chunks", "kv", "pairs",
                           "power", "error"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
  EXPECT_EQ(json["calls"]["asked"], 0);
  EXPECT_EQ(json["notices"], nlohmann::json::array());
}

TEST(RunReport, SaysWhatATokenCostInJoules) {
  RunReport report;
  report.steps = {Step(10, 4, 100)};
  report.power = RunReport::Power{50, RunReport::Power::Range{1500, 1400}, std::nullopt};
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["power"]["joules_per_fresh_token"], 0.5);
  EXPECT_EQ(json["power"]["clock_mhz"]["min"], 1400);
  EXPECT_FALSE(json["power"].contains("watts"));
}

TEST(RunReport, SurvivesTextThatIsNotUtf8) {
  RunReport report;
  report.error_message = "bad \xff byte";
  report.error_position = TextPosition{3, 2, 1};
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["error"]["line"], 2);
  EXPECT_EQ(json["error"]["column"], 1);
}

}  // namespace
}  // namespace quail::session
