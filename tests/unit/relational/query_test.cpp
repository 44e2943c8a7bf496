#include <chrono>
#include <thread>

#include "engine.h"

namespace quail::relational {
namespace {

class QueryTest : public EngineTest {};

TEST_F(QueryTest, NamesTheVersion) {
  EXPECT_TRUE(connection->engine_version().starts_with("v"));
  EXPECT_EQ(Single("SELECT version()"), connection->engine_version());
}

TEST_F(QueryTest, GivesTextOfEveryPlainType) {
  const auto row = Rows(
      "SELECT 1::TINYINT, -5::BIGINT, 18446744073709551615::UBIGINT > 0, 'it''s', NULL, "
      "1.5::DOUBLE, "
      "2::DOUBLE, sum(3), 'b'::ENUM('a', 'b'), 255::UTINYINT FROM range(2)");
  const std::vector<std::optional<std::string>> expected = {
      "1", "-5", "true", "it's", std::nullopt, "1.5", "2.0", "6", "b", "255"};
  EXPECT_EQ(row.at(0), expected);
}

TEST_F(QueryTest, RefusesToShowWhatItCannotShow) {
  const Error error = QueryError("SELECT DATE '2020-01-01' AS d");
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_NE(std::string(error.what()).find("'d' of type DATE"), std::string::npos);
}

TEST_F(QueryTest, SchemaHasTypesAsDuckDbPrintsThemWithZeroRows) {
  const std::string select =
      "SELECT 1 AS i, [1] AS l, [[1]]::INTEGER[2][] AS a, {'x': 1, 'Y z': 'b'} AS s, MAP {'a': 1} "
      "AS m, "
      "1.25::DECIMAL(9,2) AS d, 'a'::ENUM('a', 'b''c') AS e, now() AS t, union_value(u := 1) AS "
      "un, "
      "'{}'::JSON AS j, 1::HUGEINT AS h, TIME '10:00:00' AS ti, "
      "uuid() AS id, 'x'::BLOB AS b, INTERVAL 1 DAY AS iv WHERE false";
  const auto stream = connection->Query(select);
  EXPECT_TRUE(stream->has_rows());
  EXPECT_FALSE(stream->Next().has_value());
  const auto schema = stream->schema();
  const auto described = Rows("DESCRIBE " + select);
  ASSERT_EQ(schema.size(), described.size());
  for (std::size_t i = 0; i < schema.size(); ++i) {
    EXPECT_EQ(schema[i].name, described[i][0]);
    EXPECT_EQ(schema[i].type, described[i][1]) << schema[i].name;
  }
}

TEST_F(QueryTest, TellsStatementsWithRowsFromOthers) {
  EXPECT_FALSE(connection->Query("CREATE TABLE t(a INTEGER)")->has_rows());
  EXPECT_FALSE(connection->Query("INSERT INTO t VALUES (1), (2)")->has_rows());
  EXPECT_FALSE(connection->Query("SET threads = 2")->has_rows());
  EXPECT_TRUE(connection->Query("DESCRIBE t")->has_rows());
  EXPECT_TRUE(connection->Query("EXPLAIN SELECT * FROM t")->has_rows());
  EXPECT_EQ(Single("SELECT count(*) FROM t"), "2");
}

TEST_F(QueryTest, RunsWhatHasNoStatement) {
  for (const std::string_view sql : {"", " \n", "-- nothing\n", "/* */"}) {
    const auto stream = connection->Query(sql);
    EXPECT_FALSE(stream->has_rows());
    EXPECT_FALSE(stream->Next().has_value());
  }
}

TEST_F(QueryTest, RunsAStatementThatBecomesSeveral) {
  Rows("CREATE TABLE sales(city VARCHAR, year INTEGER, n INTEGER)");
  Rows("INSERT INTO sales VALUES ('A', 2000, 1), ('A', 2001, 2), ('B', 2000, 3)");
  const auto rows = Rows("PIVOT sales ON year USING sum(n) ORDER BY city");
  const TextRows expected = {{"A", "1", "2"}, {"B", "3", std::nullopt}};
  EXPECT_EQ(rows, expected);
}

TEST_F(QueryTest, StreamsAMillionRows) {
  const auto stream =
      connection->Query("SELECT range AS n, 'row ' || range AS t FROM range(1000000)");
  std::int64_t rows = 0;
  std::int64_t sum = 0;
  std::size_t largest = 0;
  while (const auto batch = stream->Next()) {
    ASSERT_GT(batch->rows(), 0U);
    largest = std::max(largest, batch->rows());
    for (std::size_t i = 0; i < batch->rows(); ++i) sum += batch->Integer(0, i);
    rows += static_cast<std::int64_t>(batch->rows());
    EXPECT_EQ(batch->Text(1, 0), "row " + std::to_string(batch->Integer(0, 0)));
  }
  EXPECT_EQ(rows, 1000000);
  EXPECT_EQ(sum, 499999500000);
  EXPECT_LE(largest, 2048U);
}

TEST_F(QueryTest, DoesNotMaterialiseWhatIsNotRead) {
  // All rows together would need 10^12 bytes.
  const auto stream = connection->Query("SELECT repeat('x', 1000) FROM range(1000000000)");
  EXPECT_EQ(stream->Next()->Text(0, 0).size(), 1000U);
}

TEST_F(QueryTest, KeepsBatchesValidAfterTheConnectionIsGone) {
  auto stream =
      connection->Query("SELECT 'a text longer than twelve bytes' || range FROM range(3)");
  const auto batch = stream->Next();
  connection.reset();
  stream.reset();
  EXPECT_EQ(batch->Text(0, 2), "a text longer than twelve bytes2");
}

TEST_F(QueryTest, SyntaxErrorHasItsPlace) {
  const Error error = QueryError("SELECT 1,\n  é FROM FROM t");
  EXPECT_EQ(error.code(), ErrorCode::kSyntax);
  ASSERT_TRUE(error.position());
  EXPECT_EQ(error.position()->line, 2U);
  EXPECT_EQ(error.position()->column, 10U);
  EXPECT_EQ(error.position()->offset, 20U);
  EXPECT_EQ(std::string(error.what()).find("LINE"), std::string::npos);
  EXPECT_EQ(std::string(error.what()).find("Parser Error"), std::string::npos);
}

TEST_F(QueryTest, UnknownNamesAreBindErrorsWithTheirPlace) {
  const Error column = QueryError("SELECT nope FROM range(3)");
  EXPECT_EQ(column.code(), ErrorCode::kBind);
  EXPECT_EQ(column.position()->offset, 7U);
  EXPECT_NE(std::string(column.what()).find("nope"), std::string::npos);
  const Error table = QueryError("SELECT * FROM nope");
  EXPECT_EQ(table.code(), ErrorCode::kBind);
  EXPECT_EQ(table.position()->offset, 14U);
  const Error function = QueryError("SELECT nope(1)");
  EXPECT_EQ(function.code(), ErrorCode::kBind);
  EXPECT_EQ(function.position()->offset, 7U);
}

TEST_F(QueryTest, ErrorsWhileRunningComeOutOfNext) {
  const auto stream = connection->Query(
      "SELECT CAST(CASE WHEN range = 700000 THEN 'x' ELSE '1' END AS INTEGER) FROM range(1000000)");
  const Error error = ErrorOf([&] {
    while (stream->Next()) {
    }
  });
  EXPECT_EQ(error.code(), ErrorCode::kQuery);
  EXPECT_NE(std::string(error.what()).find("'x'"), std::string::npos);
  EXPECT_EQ(Single("SELECT 7"), "7");
}

TEST_F(QueryTest, OtherKindsOfErrors) {
  EXPECT_EQ(QueryError("SELECT * FROM 'no/such/file.csv'").code(), ErrorCode::kIo);
  EXPECT_EQ(QueryError("SELECT error('boom')").code(), ErrorCode::kQuery);
  EXPECT_STREQ(QueryError("SELECT error('boom')").what(), "boom");
  EXPECT_EQ(QueryError(std::string_view("SELECT 1\0 + 1", 13)).code(), ErrorCode::kSyntax);
  Rows("SET memory_limit = '30MB'");
  Rows("SET temp_directory = ''");
  EXPECT_EQ(QueryError("SELECT count(*) FROM (SELECT DISTINCT range FROM range(50000000))").code(),
            ErrorCode::kOutOfMemory);
}

TEST_F(QueryTest, ReadsPlainErrorTextToo) {
  Rows("SET errors_as_json = false");
  const Error error = QueryError("SELECT nope FROM range(3)");
  EXPECT_EQ(error.code(), ErrorCode::kBind);
  EXPECT_EQ(std::string(error.what()).find("LINE 1"), std::string::npos);
}

TEST_F(QueryTest, InterruptStopsWithinASecond) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 3; ++round) {
    Clock::time_point asked;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * (round + 1)));
      asked = Clock::now();
      connection->Interrupt();
    });
    const Error error = QueryError(
        "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE (a.range * b.range) % 7 = "
        "8");
    const auto stopped = Clock::now();
    other.join();
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
    EXPECT_LT(stopped - asked, std::chrono::seconds(1));
    connection->Resume();
    EXPECT_EQ(Single("SELECT 1"), "1");
  }
}

TEST_F(QueryTest, TwoThreadsMayInterruptAtOnceAndAtAnyMoment) {
  std::atomic<bool> stop{false};
  const auto keep_interrupting = [&] {
    while (!stop) connection->Interrupt();
  };
  std::thread first(keep_interrupting);
  std::thread second(keep_interrupting);
  const Error error = QueryError(
      "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range + b.range < 0");
  stop = true;
  first.join();
  second.join();
  EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  connection->Resume();
  EXPECT_EQ(Single("SELECT 1"), "1");
}

// Before, while and after DuckDB begins the statement, which makes it forget an earlier interrupt.
TEST_F(QueryTest, AnInterruptAtAnyMomentOfTheBeginningEndsTheStatement) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 300; ++round) {
    const auto at = Clock::now() + std::chrono::microseconds(5 * round);
    std::thread other([&] {
      while (Clock::now() < at) {
      }
      connection->Interrupt();
    });
    const Error error = QueryError(
        "SELECT count(*) FROM range(100000000) a, range(100000) b WHERE a.range + b.range < 0");
    other.join();
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
    connection->Resume();
    ASSERT_EQ(Single("SELECT 1"), "1") << round;
  }
}

TEST_F(QueryTest, AnInterruptThatComesBetweenStatementsIsNotLost) {
  Rows("CREATE TEMP TABLE made AS SELECT 1 AS a");
  connection->Interrupt();
  EXPECT_EQ(QueryError("SELECT 1").code(), ErrorCode::kInterrupted);
  connection->TidyUp("DROP TABLE made");
  EXPECT_EQ(QueryError("SELECT 1").code(), ErrorCode::kInterrupted);
  connection->Resume();
  EXPECT_EQ(QueryError("SELECT a FROM made").code(), ErrorCode::kBind);
  EXPECT_EQ(Single("SELECT 1"), "1");
}

TEST_F(QueryTest, InterruptBetweenBatchesEndsTheStream) {
  const auto stream = connection->Query("SELECT range FROM range(10000000)");
  ASSERT_TRUE(stream->Next());
  connection->Interrupt();
  EXPECT_EQ(ErrorOf([&] { stream->Next(); }).code(), ErrorCode::kInterrupted);
}

TEST_F(QueryTest, KeepsTransactionsAndTempTablesOfItsSession) {
  Rows("BEGIN");
  Rows("CREATE TEMP TABLE w AS SELECT 1 AS a");
  EXPECT_EQ(Single("SELECT a FROM w"), "1");
  Rows("ROLLBACK");
  EXPECT_EQ(QueryError("SELECT a FROM w").code(), ErrorCode::kBind);
}

}  // namespace
}  // namespace quail::relational
