#include <atomic>
#include <set>
#include <thread>

#include "engine.h"

namespace quail::relational {
namespace {

class ScalarFunctionTest : public EngineTest {
 protected:
  /// is_even(INTEGER): NULL for NULL, counts its rows.
  void RegisterIsEven() {
    connection->Register(ScalarFunction{.name = "is_even",
                                        .parameters = {ScalarType::kInteger},
                                        .variadic = std::nullopt,
                                        .result = ScalarType::kBoolean,
                                        .invoke = [this](std::span<const ScalarColumn> arguments,
                                                         std::size_t rows, ScalarOutput& out) {
                                          calls += rows;
                                          for (std::size_t i = 0; i < rows; ++i) {
                                            if (arguments[0].is_null(i)) {
                                              out.SetNull(i);
                                            } else {
                                              out.SetBoolean(i, arguments[0].integers[i] % 2 == 0);
                                            }
                                          }
                                        }});
  }

  /// describe(TEXT, TEXT ..): the texts between bars, "-" for NULL.
  void RegisterDescribe() {
    connection->Register(ScalarFunction{
        .name = "describe_texts",
        .parameters = {ScalarType::kText},
        .variadic = ScalarType::kText,
        .result = ScalarType::kText,
        .invoke = [](std::span<const ScalarColumn> arguments, std::size_t rows, ScalarOutput& out) {
          for (std::size_t i = 0; i < rows; ++i) {
            std::string text;
            for (const ScalarColumn& argument : arguments) {
              text += argument.is_null(i) ? "-" : std::string(argument.texts[i]);
              text += '|';
            }
            out.SetText(i, text);
          }
        }});
  }

  /// total(INTEGER[]): the sum as DOUBLE, NULL for NULL.
  void RegisterTotal() {
    connection->Register(ScalarFunction{
        .name = "total",
        .parameters = {ScalarType::kIntegerList},
        .variadic = std::nullopt,
        .result = ScalarType::kDouble,
        .invoke = [](std::span<const ScalarColumn> arguments, std::size_t rows, ScalarOutput& out) {
          const ScalarColumn& lists = arguments[0];
          for (std::size_t i = 0; i < rows; ++i) {
            if (lists.is_null(i)) {
              out.SetNull(i);
              continue;
            }
            double sum = 0;
            for (const std::int32_t value :
                 lists.integers.subspan(lists.list_offsets[i], lists.list_lengths[i])) {
              sum += value;
            }
            out.SetDouble(i, sum);
          }
        }});
  }

  std::atomic<std::size_t> calls{0};
};

TEST_F(ScalarFunctionTest, GetsNullsAndGivesThem) {
  RegisterIsEven();
  const auto rows = Rows("SELECT is_even(a) FROM (VALUES (1), (2), (NULL)) t(a)");
  const TextRows expected = {{"false"}, {"true"}, {std::nullopt}};
  EXPECT_EQ(rows, expected);
}

TEST_F(ScalarFunctionTest, RunsInBulkOnManyThreads) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::size_t most_rows = 0;
  connection->Register(ScalarFunction{
      .name = "slow",
      .parameters = {ScalarType::kInteger},
      .variadic = std::nullopt,
      .result = ScalarType::kInteger,
      .invoke = [&](std::span<const ScalarColumn> arguments, std::size_t rows, ScalarOutput& out) {
        for (std::size_t i = 0; i < rows; ++i) out.SetInteger(i, arguments[0].integers[i] + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
        most_rows = std::max(most_rows, rows);
      }});
  Rows("SET threads = 2");
  Rows("CREATE TABLE n AS SELECT range::INTEGER AS i FROM range(500000)");
  EXPECT_EQ(Single("SELECT sum(slow(i)) FROM n"), "125000250000");
  EXPECT_EQ(most_rows, 2048U);
  EXPECT_EQ(threads.size(), 2U);
}

TEST_F(ScalarFunctionTest, ReadsShortAndLongTexts) {
  RegisterDescribe();
  const auto rows = Rows(
      "SELECT describe_texts(a, b, 'k') FROM (VALUES ('', 'exactly 12 by'), ('twelve bytes', "
      "NULL), "
      "('é' || repeat('y', 40), 'z')) t(a, b)");
  const TextRows expected = {
      {"|exactly 12 by|k|"}, {"twelve bytes|-|k|"}, {"é" + std::string(40, 'y') + "|z|k|"}};
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(Single("SELECT describe_texts('only')"), "only|");
}

TEST_F(ScalarFunctionTest, ReadsListsOfIntegers) {
  RegisterTotal();
  Rows("CREATE TABLE t(id INTEGER, l INTEGER[])");
  Rows("INSERT INTO t VALUES (1, [1, 2, 3]), (2, NULL), (3, []), (4, [-5, 10])");
  const TextRows expected = {{"6.0"}, {std::nullopt}, {"0.0"}, {"5.0"}};
  EXPECT_EQ(Rows("SELECT total(l) FROM t ORDER BY id"), expected);
  EXPECT_EQ(Single("SELECT total([7, 8])"), "15.0");
  EXPECT_EQ(Rows("SELECT total(l) FROM t WHERE id = 4"), TextRows{{"5.0"}});
}

TEST_F(ScalarFunctionTest, ReadsListsThatDuckDbComputed) {
  RegisterTotal();
  Rows(
      "CREATE TABLE t AS SELECT range::INTEGER AS id, [range::INTEGER, 1, 2] AS l FROM "
      "range(3000)");
  for (const std::string_view list :
       {"l[2:3]", "list_reverse(l)", "list_sort(l)", "[x + 0 FOR x IN l]", "l || [1]::INTEGER[]",
        "CASE WHEN id % 2 = 0 THEN l ELSE [id, id]::INTEGER[] END",
        "list_filter(l, lambda x: x > 1)", "list_distinct(l)", "flatten([l, l])",
        "COALESCE(NULLIF(l, [4, 1, 2]), [9])", "[id, 5]"}) {
    SCOPED_TRACE(list);
    const auto ours = Rows("SELECT total(" + std::string(list) + ") FROM t ORDER BY id");
    const auto theirs =
        Rows("SELECT list_sum(" + std::string(list) + ")::DOUBLE FROM t ORDER BY id");
    ASSERT_EQ(ours.size(), 3000U);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i][0].value_or("0.0"), theirs[i][0].value_or("0.0")) << "row " << i;
    }
  }
}

TEST_F(ScalarFunctionTest, ReadsListsBehindJoinsFiltersAndConstants) {
  RegisterTotal();
  Rows("CREATE TABLE t AS SELECT range::INTEGER AS id, [range::INTEGER, 1] AS l FROM range(5000)");
  EXPECT_EQ(
      Single("SELECT sum(total(a.l)) FROM t a JOIN t b ON a.id = b.id + 1 WHERE b.id % 3 = 0"),
      Single("SELECT sum(list_sum(a.l))::DOUBLE FROM t a JOIN t b ON a.id = b.id + 1 "
             "WHERE b.id % 3 = 0"));
  EXPECT_EQ(Single("SELECT sum(total([1, 2, 3])) FROM t"), "30000.0");
  EXPECT_EQ(Single("SELECT sum(total(l)) FROM (SELECT l FROM t ORDER BY id DESC LIMIT 2)"),
            "9999.0");
}

TEST_F(ScalarFunctionTest, RefusesNullInsideAList) {
  RegisterTotal();
  const Error error = QueryError("SELECT total([1, NULL, x]) FROM (VALUES (3), (4)) t(x)");
  EXPECT_EQ(error.code(), ErrorCode::kQuery);
  EXPECT_STREQ(error.what(), "NULL inside a list of integers");
}

TEST_F(ScalarFunctionTest, ItsErrorIsTheStatementsError) {
  connection->Register(
      ScalarFunction{.name = "refuse",
                     .parameters = {ScalarType::kInteger},
                     .variadic = std::nullopt,
                     .result = ScalarType::kBoolean,
                     .invoke = [](std::span<const ScalarColumn>, std::size_t, ScalarOutput&) {
                       throw Error(ErrorCode::kBudget, "no more \"pairs\"",
                                   TextPosition{.offset = 3, .line = 1, .column = 4});
                     }});
  for (const std::string_view sql :
       {"SELECT refuse(range::INTEGER) FROM range(100000)", "SELECT refuse(1)",
        "CREATE TABLE x AS SELECT refuse(range::INTEGER) AS r FROM range(10)"}) {
    const Error error = QueryError(sql);
    EXPECT_EQ(error.code(), ErrorCode::kBudget);
    EXPECT_STREQ(error.what(), "no more \"pairs\"");
    ASSERT_TRUE(error.position());
    EXPECT_EQ(error.position()->offset, 3U);
  }
  EXPECT_EQ(QueryError("SELECT error('other')").code(), ErrorCode::kQuery);
  EXPECT_EQ(Single("SELECT 1"), "1");
}

TEST_F(ScalarFunctionTest, MayStandInAWindowsOrderBy) {
  RegisterIsEven();
  const auto rows = Rows(
      "SELECT a, row_number() OVER (PARTITION BY is_even(a) ORDER BY is_even(a), a) FROM "
      "(SELECT range::INTEGER AS a FROM range(5)) ORDER BY a");
  const TextRows expected = {{"0", "1"}, {"1", "1"}, {"2", "2"}, {"3", "2"}, {"4", "3"}};
  EXPECT_EQ(rows, expected);
}

TEST_F(ScalarFunctionTest, IsCalledOnlyForRowsThatReachIt) {
  RegisterIsEven();
  Rows("CREATE TABLE n AS SELECT range::INTEGER AS i FROM range(10000)");
  EXPECT_EQ(Single("SELECT count(*) FROM n WHERE i < 100 AND is_even(i)"), "50");
  EXPECT_EQ(calls, 100U);
}

TEST_F(ScalarFunctionTest, RegisteredAgainIsReplaced) {
  const auto constant = [](std::int32_t value) {
    return ScalarFunction{.name = "answer",
                          .parameters = {ScalarType::kInteger},
                          .variadic = std::nullopt,
                          .result = ScalarType::kInteger,
                          .invoke = [value](auto, std::size_t rows, ScalarOutput& out) {
                            for (std::size_t i = 0; i < rows; ++i) out.SetInteger(i, value);
                          }};
  };
  connection->Register(constant(1));
  EXPECT_EQ(Single("SELECT answer(0)"), "1");
  connection->Register(constant(2));
  EXPECT_EQ(Single("SELECT answer(0)"), "2");
}

TEST_F(ScalarFunctionTest, OverloadsLiveBesideEachOther) {
  RegisterTotal();
  connection->Register(ScalarFunction{
      .name = "total",
      .parameters = {ScalarType::kText},
      .variadic = std::nullopt,
      .result = ScalarType::kInteger,
      .invoke = [](std::span<const ScalarColumn> arguments, std::size_t rows, ScalarOutput& out) {
        for (std::size_t i = 0; i < rows; ++i) {
          out.SetInteger(i, static_cast<std::int32_t>(arguments[0].texts[i].size()));
        }
      }});
  EXPECT_EQ(Single("SELECT total('four')"), "4");
  EXPECT_EQ(Single("SELECT total([4])"), "4.0");
}

class TableFunctionTest : public EngineTest {};

TEST_F(TableFunctionTest, GivesItsRowsAtEachScan) {
  int scans = 0;
  const auto make = [&](std::string text) {
    return TableFunction{.name = "notes",
                         .columns = {{"t", ScalarType::kText},
                                     {"n", ScalarType::kInteger},
                                     {"x", ScalarType::kDouble}},
                         .rows = [&scans, text] {
                           ++scans;
                           std::vector<std::vector<TableFunction::Cell>> rows(5000);
                           for (std::size_t i = 0; i < rows.size(); ++i) {
                             rows[i] = {text, std::to_string(i), std::nullopt};
                           }
                           rows[4999] = {std::nullopt, "-9000000000", "0.5"};
                           return rows;
                         }};
  };
  connection->Register(make("a"));
  EXPECT_EQ(Rows("SELECT count(*), count(t), min(n), sum(x) FROM notes()"),
            (TextRows{{"5000", "4999", "-9000000000", "0.5"}}));
  EXPECT_EQ(scans, 1);
  connection->Register(make("b"));
  EXPECT_EQ(Single("SELECT DISTINCT t FROM notes() WHERE t IS NOT NULL"), "b");
  EXPECT_EQ(scans, 2);
}

TEST_F(TableFunctionTest, ItsErrorIsTheStatementsError) {
  connection->Register(TableFunction{.name = "broken",
                                     .columns = {{"t", ScalarType::kText}},
                                     .rows = []() -> std::vector<std::vector<TableFunction::Cell>> {
                                       throw Error(ErrorCode::kModel, "no model");
                                     }});
  const Error error = QueryError("SELECT * FROM broken()");
  EXPECT_EQ(error.code(), ErrorCode::kModel);
  EXPECT_STREQ(error.what(), "no model");
}

}  // namespace
}  // namespace quail::relational
