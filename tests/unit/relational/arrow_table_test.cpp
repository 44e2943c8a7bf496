#include "../columnar/arrow_builder.h"
#include "engine.h"

namespace quail::relational {
namespace {

using namespace quail::columnar::testing;  // NOLINT(google-build-using-namespace)

class ArrowTableTest : public EngineTest {
 protected:
  void Register(std::deque<Column> tables, int failure = 0) {
    ArrowArrayStream stream = MakeStream(std::move(tables), failure);
    connection->Register("t", &stream);
  }
  Error RegisterError(std::deque<Column> tables, int failure = 0) {
    return ErrorOf([&] { Register(std::move(tables), failure); });
  }
  void TearDown() override {
    connection.reset();
    EXPECT_EQ(Live(), 0);
  }
};

TEST_F(ArrowTableTest, CopiesEveryType) {
  const std::string longer = "a text of more than twelve bytes";
  Register({Table({Numbers<std::int64_t>("n", "l", {1, std::nullopt}),
                   Texts<std::int32_t>("u", "u", {longer, std::nullopt}),
                   Texts<std::int64_t>("w", "U", {std::nullopt, "é"}),
                   TextViews("v", {longer, "short"}), Booleans("b", {true, std::nullopt}),
                   Numbers<double>("x \"y\"", "g", {1.5, std::nullopt}),
                   Lists("l", {{{1, 2, 3}}, std::nullopt})})});
  const auto rows = Rows("SELECT n, u, w, v, b, \"x \"\"y\"\"\", l[2] FROM t");
  const TextRows expected = {
      {"1", longer, std::nullopt, longer, "true", "1.5", "2"},
      {std::nullopt, std::nullopt, "é", "short", std::nullopt, std::nullopt, std::nullopt}};
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(Rows("SELECT column_type FROM (DESCRIBE t)"), (TextRows{{"BIGINT"},
                                                                    {"VARCHAR"},
                                                                    {"VARCHAR"},
                                                                    {"VARCHAR"},
                                                                    {"BOOLEAN"},
                                                                    {"DOUBLE"},
                                                                    {"INTEGER[]"}}));
}

TEST_F(ArrowTableTest, Bug70FollowsOffsets) {
  std::vector<std::optional<std::int32_t>> numbers;
  std::vector<std::optional<std::string>> texts;
  std::vector<std::optional<std::vector<std::int32_t>>> lists;
  for (std::int32_t i = 0; i < 5000; ++i) {
    const bool null = i % 7 == 4;
    numbers.push_back(null ? std::nullopt : std::optional(i));
    texts.push_back(null ? std::nullopt : std::optional("text number " + std::to_string(i)));
    lists.push_back(null ? std::nullopt : std::optional(std::vector<std::int32_t>(3, i)));
  }
  Column table = Table({Numbers<std::int32_t>("n", "i", numbers), TextViews("v", texts),
                        Texts<std::int32_t>("t", "u", texts), Lists("l", lists)});
  for (Column& column : table.children) {
    column.offset = 3;
    column.length -= 3;
  }
  table.offset = 10;
  table.length = 4500;
  Register({table});
  const auto rows = Rows("SELECT n, v, t, list_sum(l), len(l) FROM t");
  ASSERT_EQ(rows.size(), 4500U);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t i = row + 13;
    if (!numbers[i]) {
      ASSERT_EQ(rows[row], (std::vector<std::optional<std::string>>(5))) << row;
      continue;
    }
    ASSERT_EQ(rows[row][0], std::to_string(i));
    ASSERT_EQ(rows[row][1], texts[i]);
    ASSERT_EQ(rows[row][2], texts[i]);
    ASSERT_EQ(rows[row][3], std::to_string(3 * i));
    ASSERT_EQ(rows[row][4], "3");
  }
}

TEST_F(ArrowTableTest, Bug71NullInsideADictionaryIsNull) {
  Register({Table({Dictionary(Numbers<std::int32_t>("d", "i", {0, 1, std::nullopt, 0}),
                              Texts<std::int32_t>("", "u", {"a", std::nullopt}))})});
  EXPECT_EQ(Rows("SELECT d FROM t"), (TextRows{{"a"}, {std::nullopt}, {std::nullopt}, {"a"}}));
  EXPECT_EQ(Single("SELECT count(*) FROM t WHERE d IS NULL"), "2");
}

TEST_F(ArrowTableTest, TakesManyBatchesAndNone) {
  std::deque<Column> tables;
  for (std::int32_t i = 0; i < 50; ++i) {
    tables.push_back(Table({Numbers<std::int32_t>("n", "i", {i, i + 1})}));
  }
  Register(tables);
  EXPECT_EQ(Rows("SELECT count(*), sum(n) FROM t"), (TextRows{{"100", "2500"}}));
  Register(
      {Table({Numbers<std::int32_t>("n", "i", {}), Lists("l", {}), TextViews("v", {}),
              Dictionary(Numbers<std::int8_t>("d", "c", {}), Texts<std::int32_t>("", "u", {}))})});
  EXPECT_EQ(Single("SELECT count(*) FROM t"), "0");
  EXPECT_EQ(Rows("SELECT column_name FROM (DESCRIBE t)"), (TextRows{{"n"}, {"l"}, {"v"}, {"d"}}));
}

TEST_F(ArrowTableTest, Bug49RegisteringAgainReplaces) {
  Register({Table({Texts<std::int32_t>("t", "u", {"first"})})});
  EXPECT_EQ(Single("SELECT t FROM t"), "first");
  Register({Table({Texts<std::int32_t>("t", "u", {"second"})})});
  EXPECT_EQ(Single("SELECT t FROM t"), "second");
}

TEST_F(ArrowTableTest, AFailureLeavesTheTableAsItWas) {
  Register({Table({Texts<std::int32_t>("t", "u", {"first"})})});
  const Column good = Table({Texts<std::int32_t>("t", "u", {"fine"})});
  Column bad = good;
  bad.children[0].buffers[2]->at(0) = 0xFF;
  const Error error = RegisterError({good, bad});
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("'t': row 0 is not valid UTF-8"), std::string::npos);
  const Error broken = RegisterError({good}, 5);
  EXPECT_EQ(broken.code(), ErrorCode::kIo);
  EXPECT_NE(std::string(broken.what()).find("the source broke"), std::string::npos);
  EXPECT_EQ(Rows("SELECT t FROM t"), (TextRows{{"first"}}));
  EXPECT_EQ(Rows("SELECT table_name FROM duckdb_tables()"), (TextRows{{"t"}}));
}

TEST_F(ArrowTableTest, HostileArraysAreErrors) {
  Column short_child = Table({Numbers<std::int32_t>("n", "i", {1, 2})});
  short_child.length = 3;
  EXPECT_EQ(RegisterError({short_child}).code(), ErrorCode::kCorrupt);
  Column unknown = Table({Numbers<std::int32_t>("n", "i", {1})});
  unknown.children[0].format = "+r";
  unknown.children[0].buffers.clear();
  EXPECT_EQ(RegisterError({unknown}).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(RegisterError({Column{"", "+s", 0, 0, 0, {std::nullopt}, {}, nullptr}}).code(),
            ErrorCode::kUsage);
}

TEST_F(ArrowTableTest, NamesThatDifferOnlyInCaseAreAnError) {
  const Error error = RegisterError(
      {Table({Numbers<std::int32_t>("n", "i", {1}), Numbers<std::int32_t>("N", "i", {1})})});
  EXPECT_EQ(error.code(), ErrorCode::kBind);
  EXPECT_NE(std::string(error.what()).find("already exists"), std::string::npos);
}

TEST_F(ArrowTableTest, WorksInsideATransaction) {
  Rows("BEGIN");
  Register({Table({Texts<std::int32_t>("t", "u", {"first"})})});
  EXPECT_EQ(Single("SELECT t FROM t"), "first");
  Rows("COMMIT");
  EXPECT_EQ(Single("SELECT t FROM t"), "first");
}

TEST_F(ArrowTableTest, ResultsGoBackAsArrow) {
  Register({Table({Dictionary(Numbers<std::int32_t>("d", "i", {0, 1, std::nullopt, 0}),
                              Texts<std::int32_t>("", "u", {"a", std::nullopt})),
                   Numbers<std::int64_t>("n", "l", {1, 2, 3, std::nullopt})})});
  const auto stream = connection->Query("SELECT d, n, n::HUGEINT * 2, [n, 5], {'k': n} FROM t");
  const auto batch = stream->Next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->Text(0, 0), "a");
  EXPECT_TRUE(batch->IsNull(0, 1));
  EXPECT_EQ(batch->Integer(2, 2), 6);
  EXPECT_TRUE(batch->IsNull(1, 3));
}

}  // namespace
}  // namespace quail::relational
