#include "sql/statement.h"

#include <gtest/gtest.h>

#include <string>

namespace quail::sql {
namespace {

Statement Read(std::string_view script, Dialect dialect = Dialect::kSnowflake) {
  const auto parts = SplitScript(script, dialect);
  EXPECT_EQ(parts.size(), 1U) << script;
  return ReadStatement(script, parts.at(0), dialect);
}

TEST(SplitScript, SemicolonsInStringsAndCommentsDoNotSplit) {
  const std::string_view script = " SELECT ';' ; -- ; \n\n; SELECT \"a;b\" /* ; */ + 1 ;\n";
  const auto parts = SplitScript(script, Dialect::kSnowflake);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(script.substr(parts[0].offset, parts[0].size), "SELECT ';'");
  EXPECT_EQ(script.substr(parts[1].offset, parts[1].size), "SELECT \"a;b\" /* ; */ + 1");
}

TEST(Statement, KindsAreToldApart) {
  EXPECT_EQ(Read("SELECT 1").kind, StatementKind::kQuery);
  EXPECT_EQ(Read("FROM t").kind, StatementKind::kQuery);
  EXPECT_EQ(Read("(SELECT 1) UNION (SELECT 2)").kind, StatementKind::kQuery);
  EXPECT_EQ(Read("EXPLAIN SELECT 1").kind, StatementKind::kExplain);
  EXPECT_EQ(Read("EXPLAIN ANALYZE SELECT 1").query, "SELECT 1");
  EXPECT_EQ(Read("EXPLAIN ANALYZE SELECT 1").kind, StatementKind::kExplainAnalyze);
  EXPECT_EQ(Read("DESCRIBE SELECT 1").kind, StatementKind::kDescribe);
  EXPECT_EQ(Read("DESCRIBE t").kind, StatementKind::kOther);
  EXPECT_EQ(Read("DROP TABLE t").kind, StatementKind::kOther);
  EXPECT_EQ(Read("SET threads = 2").kind, StatementKind::kOther);
}

TEST(Statement, QueriesAreCutOutOfWhatSurroundsThem) {
  const Statement create = Read("CREATE OR REPLACE TABLE x AS SELECT 1 AS a");
  EXPECT_EQ(create.before, "CREATE OR REPLACE TABLE x AS ");
  EXPECT_EQ(create.query, "SELECT 1 AS a");
  const Statement insert = Read("INSERT INTO x (a, b) SELECT 1, 2 ON CONFLICT DO NOTHING");
  EXPECT_EQ(insert.before, "INSERT INTO x (a, b) ");
  EXPECT_EQ(insert.query, "SELECT 1, 2");
  EXPECT_EQ(insert.after, " ON CONFLICT DO NOTHING");
  const Statement copy = Read("COPY (SELECT ')' AS a) TO 'f.csv' (HEADER)");
  EXPECT_EQ(copy.before, "COPY ( ");
  EXPECT_EQ(copy.query, "SELECT ')' AS a");
  EXPECT_EQ(copy.after, " ) TO 'f.csv' (HEADER)");
}

TEST(Statement, SettingsOfOursAreRead) {
  const Statement set = Read("SET quail_on_error = 'fail'");
  EXPECT_EQ(set.kind, StatementKind::kSet);
  EXPECT_EQ(set.setting, "quail_on_error");
  EXPECT_EQ(set.value, "fail");
  const Statement alter = Read("alter session set AI_SQL_ERROR_HANDLING_USE_FAIL_ON_ERROR = TRUE");
  EXPECT_EQ(alter.setting, "ai_sql_error_handling_use_fail_on_error");
  EXPECT_EQ(alter.value, "TRUE");
  EXPECT_EQ(Read("SET quail_max_pairs TO -5").value, "-5");
  EXPECT_THROW(Read("SET quail_on_error"), Error);
  EXPECT_THROW(Read("SET quail_on_error = 1 + 1"), Error);
  EXPECT_THROW(Read("ALTER SESSION SET nonsense = 1"), Error);
}

TEST(Statement, AiCallsOutsideOfQueriesAreToBeRefusedAtTheirPlace) {
  const std::string_view script = "SELECT 1;\nMERGE INTO t USING u ON AI_FILTER(x)";
  const auto parts = SplitScript(script, Dialect::kSnowflake);
  const Statement merge = ReadStatement(script, parts.at(1), Dialect::kSnowflake);
  EXPECT_EQ(merge.kind, StatementKind::kOther);
  EXPECT_TRUE(merge.has_ai);
  EXPECT_EQ(merge.first_ai, script.find("AI_FILTER"));
  EXPECT_NE(merge.refusal.find("MERGE"), std::string::npos);
  EXPECT_NE(Read("EXPLAIN MERGE INTO t USING u ON AI_FILTER(x)").refusal.find("MERGE"),
            std::string::npos);
}

TEST(Statement, ExplainOfWhatHasAQueryIsCutAsThat) {
  const Statement create = Read("EXPLAIN CREATE TABLE x AS SELECT 1 AS a");
  EXPECT_EQ(create.kind, StatementKind::kExplain);
  EXPECT_EQ(create.before, "CREATE TABLE x AS ");
  EXPECT_EQ(create.query, "SELECT 1 AS a");
  const Statement change = Read("EXPLAIN ANALYZE DELETE FROM t WHERE AI_FILTER(b)");
  EXPECT_EQ(change.kind, StatementKind::kExplainAnalyze);
  EXPECT_EQ(change.target, "t");
  EXPECT_EQ(change.check, "DELETE FROM t");
  EXPECT_EQ(Read("EXPLAIN WITH c AS (SELECT 1) DELETE FROM t").kind, StatementKind::kOther);
  EXPECT_EQ(Read("EXPLAIN WITH c AS (SELECT 1) FROM c").kind, StatementKind::kExplain);
}

TEST(Statement, AWithBeforeAChangeIsNoQuery) {
  const std::string_view text =
      "WITH a (x) AS MATERIALIZED (SELECT 1), b AS (FROM a) UPDATE t SET c = 1";
  EXPECT_EQ(Read(text).kind, StatementKind::kOther);
  EXPECT_EQ(Read(text).query, text);
  EXPECT_EQ(Read("WITH RECURSIVE AS (SELECT 1) FROM recursive").kind, StatementKind::kQuery);
  EXPECT_EQ(Read("WITH insert AS (SELECT 1) SELECT 1").kind, StatementKind::kQuery);
  const Statement insert = Read("WITH a AS (SELECT 1) INSERT INTO t SELECT AI_FILTER(x) FROM a");
  EXPECT_EQ(insert.before, "INSERT INTO t ");
  EXPECT_EQ(insert.query, "WITH a AS (SELECT 1) SELECT ai_filter(x) FROM a");
}

TEST(Statement, ChangesAreQueriesAndWhatIsDoneWithTheirRows) {
  const Statement update =
      Read("UPDATE s.t AS x SET a = AI_FILTER(x.b), c = 1 + 2 FROM u WHERE x.id = u.id");
  EXPECT_TRUE(update.has_ai);
  EXPECT_EQ(update.before, "CREATE OR REPLACE TEMP TABLE quail_changed AS ");
  EXPECT_EQ(
      update.query,
      "SELECT \"x\".rowid AS quail_changed_row, (ai_filter(x.b)) AS quail_value_0, (1 + 2) AS "
      "quail_value_1 FROM s.t AS \"x\", u WHERE x.id = u.id");
  EXPECT_EQ(update.then,
            "UPDATE s.t AS \"x\" SET \"a\" = quail_changed.quail_value_0, \"c\" = "
            "quail_changed.quail_value_1 FROM quail_changed WHERE \"x\".rowid = "
            "quail_changed.quail_changed_row");
  const Statement remove = Read("DELETE FROM t USING u WHERE AI_FILTER(t.b || u.c)");
  EXPECT_EQ(remove.then,
            "DELETE FROM t WHERE rowid IN (SELECT quail_changed_row FROM quail_changed)");
  EXPECT_EQ(Read("DELETE FROM t WHERE a = 1").kind, StatementKind::kOther);
}

TEST(Statement, ChangesReturnRowsAndReadAWith) {
  const Statement remove =
      Read("WITH c AS (SELECT 1) DELETE FROM t AS a WHERE AI_FILTER(b) RETURNING *");
  EXPECT_TRUE(remove.gives_rows);
  EXPECT_EQ(remove.query,
            "WITH c AS (SELECT 1) SELECT \"a\".rowid AS quail_changed_row FROM t AS \"a\" WHERE "
            "ai_filter(b)");
  EXPECT_TRUE(remove.then.starts_with("DELETE FROM t AS \"a\" WHERE rowid IN"));
  EXPECT_TRUE(remove.then.ends_with(" RETURNING *"));
  EXPECT_EQ(remove.check, "DELETE FROM t AS \"a\" RETURNING *");
  EXPECT_THROW(Read("DELETE FROM t WHERE x RETURNING AI_FILTER(b)"), Error);
  EXPECT_THROW(Read("WITH T AS (SELECT 1) DELETE FROM t WHERE AI_FILTER(b)"), Error);
}

TEST(Statement, MergeIsCutAtItsQuery) {
  const Statement query = Read(
      "WITH c AS (FROM d) MERGE INTO t USING (SELECT AI_FILTER(b) FROM c) AS s USING (id) "
      "RETURNING *");
  EXPECT_EQ(query.kind, StatementKind::kQuery);
  EXPECT_TRUE(query.gives_rows);
  EXPECT_EQ(query.before, "MERGE INTO t USING ( ");
  EXPECT_EQ(query.query, "WITH c AS (FROM d) SELECT ai_filter(b) FROM c");
  EXPECT_EQ(query.after, " ) AS s USING (id) RETURNING *");
  const Statement table = Read(
      "WITH c AS (SELECT AI_FILTER(b) FROM d) MERGE INTO t USING c ON t.id = c.id WHEN MATCHED "
      "THEN DELETE");
  EXPECT_EQ(table.query, "WITH c AS (SELECT ai_filter(b) FROM d) SELECT * FROM c");
  EXPECT_EQ(table.after, ") AS \"c\" ON t.id = c.id WHEN MATCHED THEN DELETE");
  EXPECT_THROW(Read("MERGE INTO t USING (FROM s) AS s ON AI_FILTER(b) WHEN MATCHED THEN DELETE"),
               Error);
}

TEST(Statement, ViewsHaveNames) {
  const Statement view =
      Read("CREATE OR REPLACE VIEW \"My view\" (a, b) AS SELECT AI_FILTER(x), 1 FROM t");
  EXPECT_EQ(view.kind, StatementKind::kCreateView);
  EXPECT_EQ(view.view, "My view");
  EXPECT_EQ(view.view_columns, (std::vector<std::string>{"a", "b"}));
}

TEST(Statement, PositionsCountFromTheBeginningOfTheScript) {
  const std::string_view script = "SELECT 1;\n/* \xC3\xA9 */ SELECT 'a\\tb', nope";
  const auto parts = SplitScript(script, Dialect::kSnowflake);
  const Statement statement = ReadStatement(script, parts.at(1), Dialect::kSnowflake);
  EXPECT_EQ(statement.query, "SELECT 'a\tb', nope");
  const TextPosition place = statement.Locate(script, statement.query.find("nope"));
  EXPECT_EQ(place.line, 2U);
  EXPECT_EQ(place.column, 24U);
}

}  // namespace
}  // namespace quail::sql
