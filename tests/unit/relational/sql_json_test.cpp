#include "relational/sql_json.h"

#include "engine.h"

namespace quail::relational {
namespace {

class SqlJsonTest : public EngineTest {
 protected:
  std::string RoundTrip(std::string_view sql) {
    return DeserializeSql(*connection, SerializeSql(*connection, sql));
  }
};

TEST_F(SqlJsonTest, TheRoundTripMeansTheSame) {
  Rows("CREATE TABLE t AS SELECT range AS a, 'it''s ' || range AS \"b C\" FROM range(10)");
  for (const std::string_view sql : {
           "SELECT a, \"b C\" FROM t WHERE a > 3 ORDER BY a DESC LIMIT 2",
           "WITH w AS (SELECT max(a) AS m FROM t) SELECT m, 'a''b\\n' AS q FROM w",
           "SELECT count(*) FROM t x JOIN t y ON x.a = y.a + 1 AND x.\"b C\" <> 'it''s 3'",
           "SELECT a FROM t WHERE a IN (1, 2) UNION ALL SELECT 99 ORDER BY 1",
       }) {
    EXPECT_EQ(Rows(RoundTrip(sql)), Rows(sql)) << sql;
  }
}

TEST_F(SqlJsonTest, KeepsHostileText) {
  const std::string text = "'); DROP TABLE t; -- $$ \\ \" {} é \t\n";
  std::string doubled;
  for (const char c : text) doubled += c == '\'' ? "''" : std::string(1, c);
  EXPECT_EQ(Single(RoundTrip("SELECT '" + doubled + "'")), text);
}

TEST_F(SqlJsonTest, TakesLargeStatements) {
  std::string sql = "SELECT 'x'";
  for (int i = 0; i < 2000; ++i) sql += ", '" + std::string(1000, 'y') + "'";
  EXPECT_GT(SerializeSql(*connection, sql).size(), sql.size());
  EXPECT_EQ(Rows(RoundTrip(sql)).at(0).size(), 2001U);
}

TEST_F(SqlJsonTest, KeepsCallsThatDuckDbDoesNotKnow) {
  const std::string json = SerializeSql(
      *connection, "SELECT a FROM t WHERE ai_filter(prompt('{0}?', a), {'selectivity': 0.3})");
  EXPECT_NE(json.find("\"ai_filter\""), std::string::npos);
  EXPECT_NE(DeserializeSql(*connection, json).find("ai_filter(prompt('{0}?', a)"),
            std::string::npos);
}

TEST_F(SqlJsonTest, SyntaxErrorsHaveTheirPlaceInBytes) {
  const Error error = ErrorOf([&] { SerializeSql(*connection, "SELECT 'é'\nFROM FROM t"); });
  EXPECT_EQ(error.code(), ErrorCode::kSyntax);
  ASSERT_TRUE(error.position());
  EXPECT_EQ(error.position()->offset, 17U);
  EXPECT_EQ(error.position()->line, 2U);
  EXPECT_EQ(error.position()->column, 6U);
  const Error at_end = ErrorOf([&] { SerializeSql(*connection, "SELECT (1"); });
  EXPECT_EQ(at_end.code(), ErrorCode::kSyntax);
  EXPECT_EQ(ErrorOf([&] { SerializeSql(*connection, std::string_view("SELECT\0", 7)); }).code(),
            ErrorCode::kSyntax);
}

TEST_F(SqlJsonTest, OtherStatementsThanSelectAreNotSupported) {
  EXPECT_EQ(ErrorOf([&] { SerializeSql(*connection, "CREATE TABLE x(a INTEGER)"); }).code(),
            ErrorCode::kUnsupported);
}

TEST_F(SqlJsonTest, RefusesWhatIsNoTree) {
  EXPECT_THROW(DeserializeSql(*connection, "{"), Error);
  EXPECT_THROW(DeserializeSql(*connection, R"({"error":false,"statements":[{"node":5}]})"), Error);
}

}  // namespace
}  // namespace quail::relational
