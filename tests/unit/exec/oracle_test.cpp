#include "exec/oracle.h"

#include <gtest/gtest.h>

#include "quail/error.h"

namespace quail::exec {
namespace {

PlantedAnswer Ask(const Oracle& oracle, std::string_view prompt,
                  std::vector<std::string_view> arguments) {
  return oracle.Decide(prompt, arguments);
}

TEST(Oracle, FirstMatchingRuleDecides) {
  const Oracle oracle = Oracle::Parse(
      "{\"template\": \"Snow? {0}\", \"contains\": [\"snow\"], \"verdict\": true}\n"
      "\n"
      "{\"args\": [\"exact text\"], \"verdict\": null}\n"
      "{\"contains\": [\"boom\"], \"verdict\": \"error: boom\"}\n"
      "{\"verdict\": false}\n",
      "o");
  EXPECT_EQ(Ask(oracle, "Snow? {0}", {"much snow"}).verdict, Verdict::kTrue);
  EXPECT_EQ(Ask(oracle, "Rain? {0}", {"much snow"}).verdict, Verdict::kFalse);
  EXPECT_EQ(Ask(oracle, "x {0}", {"exact text"}).verdict, Verdict::kNull);
  EXPECT_EQ(Ask(oracle, "x {0}", {"exact text "}).verdict, Verdict::kFalse);
  EXPECT_EQ(Ask(oracle, "x {0}", {"a boom"}).reason, "boom");
}

TEST(Oracle, ContainsMayBeInAnyArgumentButNeverInNone) {
  const Oracle oracle = Oracle::Parse(R"({"contains": ["a", "b"], "verdict": true})", "o");
  EXPECT_EQ(Ask(oracle, "{0} {1}", {"xa", "bx"}).verdict, Verdict::kTrue);
  EXPECT_EQ(Ask(oracle, "{0} {1}", {"xa", "ax"}).reason, "oracle has no rule");
  const Oracle empty = Oracle::Parse(R"({"contains": [""], "verdict": true})", "o");
  EXPECT_EQ(Ask(empty, "water wet?", {}).verdict, Verdict::kError);
}

TEST(Oracle, MarginImpliesTheVerdict) {
  const Oracle oracle = Oracle::Parse(
      "{\"args\": [\"a\"], \"margin\": 1.5}\n{\"args\": [\"b\"], \"margin\": 0}\n"
      "{\"args\": [\"c\"], \"verdict\": true}\n{\"verdict\": false, \"margin\": -3}",
      "o");
  EXPECT_EQ(Ask(oracle, "{0}", {"a"}).verdict, Verdict::kTrue);
  EXPECT_EQ(Ask(oracle, "{0}", {"a"}).margin, 1.5F);
  EXPECT_EQ(Ask(oracle, "{0}", {"b"}).verdict, Verdict::kFalse);
  EXPECT_EQ(Ask(oracle, "{0}", {"c"}).margin, 1.0F);
  EXPECT_EQ(Ask(oracle, "{0}", {"d"}).margin, -3.0F);
}

class OracleErrors : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(OracleErrors, NameTheLine) {
  const std::string text = std::string("{\"verdict\": false}\n\n") + GetParam().first;
  try {
    Oracle::Parse(text, "truth.jsonl");
    FAIL() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("truth.jsonl, line 3: "), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(GetParam().second), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OracleErrors,
    testing::Values(std::pair{"{", "not JSON"}, std::pair{"[1]", "not a JSON object"},
                    std::pair{R"({"contains": ["x"]})", "needs \"verdict\""},
                    std::pair{R"({"verdict": "maybe"})", "must be true, false, null"},
                    std::pair{R"({"verdict": "error:"})", "needs a reason"},
                    std::pair{R"({"verdict": true, "margin": -1})", "contradicts"},
                    std::pair{R"({"verdict": null, "margin": 1})", "contradicts"},
                    std::pair{R"({"margin": "x"})", "must be a number"},
                    std::pair{R"({"verdict": true, "contain": []})", "unknown key \"contain\""},
                    std::pair{R"({"verdict": true, "args": "x"})", "list of texts"},
                    std::pair{R"({"label": "x"})", "not supported yet"}));

}  // namespace
}  // namespace quail::exec
