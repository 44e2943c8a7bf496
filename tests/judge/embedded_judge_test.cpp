#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "quail/session.h"
#include "test_paths.h"

namespace quail {
namespace {

/// The embedded judge as a user gets it: SQL over tests/data/judge_eval.jsonl, rows with known
/// answers that no training has seen (tools/judge/domain_tests.py --fixed).
class EmbeddedJudge : public testing::Test {
 protected:
  struct Scores {
    std::size_t rows = 0;
    double auc = 0;       ///< a true row has the larger probability; ties count half
    double accuracy = 0;  ///< at probability 0.5
  };

  void SetUp() override {
    if (!std::filesystem::exists(std::filesystem::path(QUAIL_DEPS_DIR) /
                                 "models/SmolLM2-135M-Instruct.Q4_1.gguf")) {
      GTEST_SKIP() << "skipped: no embedded model";
    }
  }

  /// Each `stride`-th row of the file is judged.
  void OpenSession(const std::string& adapter, int stride) {
    Config config;
    config.adapter = adapter;
    config.backend = "cpu";
    session_ = Session::Open(config);
    session_->RegisterFile("judge_eval", QUAIL_SOURCE_DIR "/tests/data/judge_eval.jsonl");
    Rows(
        "CREATE TABLE picked AS SELECT * FROM (SELECT *, row_number() OVER () AS id FROM "
        "judge_eval) WHERE id % " +
        std::to_string(stride) + " = 0");
  }

  std::vector<std::vector<std::string>> Rows(const std::string& sql) {
    const auto result = session_->Run(sql, {sql, 0}, {});
    std::vector<std::vector<std::string>> rows;
    for (auto cells = result->Next(); !cells.empty(); cells = result->Next()) {
      for (const auto& row : cells) {
        rows.emplace_back();
        for (const auto& cell : row) rows.back().push_back(cell.value_or("NULL"));
      }
    }
    return rows;
  }

  static std::string Quoted(std::string_view text) {
    std::string sql = "'";
    for (const char c : text) sql += c == '\'' ? "''" : std::string(1, c);
    return sql + "'";
  }

  /// A question of the file as a template with slots for the texts.
  static std::string Template(std::string question) {
    const std::string reference = "DOCUMENT {";
    if (question.find(reference) == std::string::npos) return question + " {0}";
    for (auto at = question.find(reference); at != std::string::npos;
         at = question.find(reference)) {
      question.erase(at, reference.size() - 1);
    }
    return question;
  }

  /// One statement with a branch for each question.
  std::string FilterStatement() {
    std::string sql;
    for (const auto& row : Rows("SELECT DISTINCT question, partner IS NULL FROM picked")) {
      const std::string arguments = row[1] == "true"
                                        ? "text"
                                        : "CASE anchor WHEN 0 THEN text ELSE partner END, "
                                          "CASE anchor WHEN 0 THEN partner ELSE text END";
      sql += (sql.empty() ? "" : " UNION ALL ") + std::string("SELECT truth, AI_PROB(PROMPT(") +
             Quoted(Template(row[0])) + ", " + arguments +
             ")) FROM picked WHERE question = " + Quoted(row[0]);
    }
    return sql;
  }

  Scores JudgeAll() {
    std::vector<double> truths[2];
    for (const auto& row : Rows(FilterStatement())) {
      truths[row[0] == "true" ? 1 : 0].push_back(std::stod(row[1]));
    }
    Scores scores;
    scores.rows = truths[0].size() + truths[1].size();
    double wins = 0;
    double right = 0;
    for (const double yes : truths[1]) {
      right += yes > 0.5 ? 1 : 0;
      for (const double no : truths[0]) wins += yes > no ? 1 : yes == no ? 0.5 : 0;
    }
    for (const double no : truths[0]) right += no <= 0.5 ? 1 : 0;
    scores.auc = wins / static_cast<double>(truths[0].size() * truths[1].size());
    scores.accuracy = right / static_cast<double>(scores.rows);
    RecordProperty("auc", std::to_string(scores.auc));
    RecordProperty("accuracy", std::to_string(scores.accuracy));
    return scores;
  }

  struct PairScores {
    int rows = 0;
    int wrong = 0;
  };

  /// The pairs once more, as the join that the demonstration runs.
  PairScores JudgePairs() {
    const std::string side = " FROM picked WHERE partner IS NOT NULL) ";
    const auto found = Rows(
        "SELECT count(*), count(*) FILTER (WHERE c.truth) FROM "
        "(SELECT id, truth, CASE anchor WHEN 0 THEN text ELSE partner END AS profile" +
        side + "c JOIN (SELECT id, CASE anchor WHEN 0 THEN partner ELSE text END AS description" +
        side +
        "p ON c.id = p.id AND AI_FILTER(PROMPT('{0} might buy this: {1}', c.profile, "
        "p.description))");
    const auto total =
        Rows("SELECT count(*), count(*) FILTER (WHERE truth)" + side.substr(0, side.size() - 2));
    const int rightly = std::stoi(found[0][1]);
    PairScores scores;
    scores.rows = std::stoi(total[0][0]);
    scores.wrong = std::stoi(found[0][0]) + std::stoi(total[0][1]) - 2 * rightly;
    RecordProperty("pairs_wrong", scores.wrong);
    return scores;
  }

  std::unique_ptr<Session> session_;
};

constexpr double kLeastAuc = 0.96;
constexpr double kLeastAccuracy = 0.90;

TEST_F(EmbeddedJudge, RanksAndDecides) {
  OpenSession("", 3);
  const Scores scores = JudgeAll();
  EXPECT_EQ(scores.rows, 127U);
  EXPECT_GE(scores.auc, kLeastAuc);
  EXPECT_GE(scores.accuracy, kLeastAccuracy);
  const PairScores pairs = JudgePairs();
  EXPECT_EQ(pairs.rows, 27);
  EXPECT_LE(pairs.wrong, 2);
}

/// The bounds above say something: the model alone is far below both.
TEST_F(EmbeddedJudge, NeedsItsAdapter) {
  OpenSession("none", 9);
  const Scores scores = JudgeAll();
  EXPECT_LT(scores.auc, 0.7);
  EXPECT_LT(scores.accuracy, 0.7);
}

}  // namespace
}  // namespace quail
