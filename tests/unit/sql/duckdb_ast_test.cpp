#include "sql/duckdb_ast.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "quail/error.h"
#include "test_paths.h"

namespace quail::sql {
namespace {

/// Trees recorded from each version (json_serialize_sql of 1.5.5 and 2.0.0).
class DuckDbAst : public testing::TestWithParam<const char*> {
 protected:
  static Json Read(const std::string& name) {
    std::ifstream file(std::string(QUAIL_SOURCE_DIR) + "/tests/data/duckdb_ast/" + name + "_" +
                       GetParam() + ".json");
    EXPECT_TRUE(file) << name;
    return ReadTree(std::string{std::istreambuf_iterator<char>(file), {}});
  }
};

TEST_P(DuckDbAst, ArgumentsHaveTheirNamesAndValues) {
  Json tree = Read("filter");
  Json& call = QueryNode(tree)["select_list"][0];
  EXPECT_EQ(FunctionName(call), "ai_if");
  EXPECT_EQ(LocationOf(call), 7U);
  const auto arguments = ArgumentsOf(call);
  ASSERT_EQ(arguments.size(), 5U);
  EXPECT_EQ(arguments[0].name, "");
  EXPECT_EQ(FunctionName(*arguments[0].value), "prompt");
  EXPECT_EQ(ColumnPath(*ArgumentsOf(*arguments[0].value)[1].value),
            (std::vector<std::string>{"t", "b"}));
  EXPECT_EQ(FunctionName(*arguments[1].value), "struct_pack");
  EXPECT_EQ(arguments[2].name, "max_error_ratio");
  EXPECT_EQ(arguments[3].name, "flag");
}

TEST_P(DuckDbAst, ConstantsAreReadInAllTheirShapes) {
  Json tree = Read("filter");
  Json& call = QueryNode(tree)["select_list"][0];
  const auto arguments = ArgumentsOf(call);
  const auto options = ArgumentsOf(*arguments[1].value);
  ASSERT_EQ(options.size(), 2U);
  EXPECT_EQ(options[0].name, "selectivity");
  EXPECT_DOUBLE_EQ(ConstantOf(*options[0].value)->number, 0.3);
  EXPECT_EQ(ConstantOf(*options[1].value)->text, "r");
  EXPECT_DOUBLE_EQ(ConstantOf(*arguments[2].value)->number, 0.1);
  EXPECT_EQ(ConstantOf(*arguments[3].value)->kind, ConstantKind::kBoolean);
  EXPECT_TRUE(ConstantOf(*arguments[3].value)->boolean);
  EXPECT_EQ(ConstantOf(*arguments[4].value)->kind, ConstantKind::kNull);
  const auto number = ConstantOf(QueryNode(tree)["select_list"][1]);
  EXPECT_EQ(number->number, -2);
  EXPECT_EQ(number->text, "-2");
  EXPECT_FALSE(ConstantOf(call));
}

TEST_P(DuckDbAst, ExpressionsOfABlockIncludeItsModifiers) {
  Json tree = Read("filter");
  const auto expressions = ExpressionsOf(QueryNode(tree));
  ASSERT_EQ(expressions.size(), 6U);
  EXPECT_EQ(TypeOf(*expressions[0]), "OPERATOR_NOT");
  EXPECT_EQ(ColumnPath(*expressions[3]), std::vector<std::string>{"c"});
  EXPECT_EQ(ConstantOf(*expressions[4])->number, 3);
  EXPECT_EQ(ConstantOf(*expressions[5])->number, 1);
}

TEST_P(DuckDbAst, JoinsAndTableExpressionsAreFound) {
  Json tree = Read("join");
  Json& node = QueryNode(tree);
  const auto ctes = CtesOf(node);
  ASSERT_EQ(ctes.size(), 1U);
  EXPECT_EQ(ctes[0].name, "w");
  EXPECT_TRUE(IsQueryNode(*ctes[0].query));
  EXPECT_EQ(TypeOf(node["from_table"]), "JOIN");
  EXPECT_EQ(TextMember(node["from_table"], "join_type"), "LEFT");
  const Json& inner = node["from_table"]["left"];
  EXPECT_EQ(TypeOf(inner["condition"]), "CONJUNCTION_AND");
  EXPECT_EQ(AliasOf(inner["right"]), "s");
}

TEST_P(DuckDbAst, TablesAreTakenApartFromTheQueriesOfWith) {
  Json tree = Read("join");
  const auto ctes = AllCtesOf(tree);
  ASSERT_EQ(ctes.size(), 1U);
  EXPECT_EQ(ctes[0].name, "w");
  EXPECT_FALSE(ctes[0].renamed);
  std::vector<std::string> tables;
  ForEachTable(tree, [&tables](const Json& table, const std::vector<CteEntry>& known) {
    const bool cte = FindCte(known, table) != nullptr;
    tables.push_back(std::string(TextMember(table, "table_name")) + (cte ? " of WITH" : ""));
  });
  EXPECT_EQ(tables, (std::vector<std::string>{"a", "b", "w of WITH"}));
}

TEST_P(DuckDbAst, ATableGetsAnotherName) {
  Json tree = Read("join");
  ForEachTable(tree, [](Json& table, const std::vector<CteEntry>& known) {
    if (FindCte(known, table) == nullptr) SetTableName(table, {"", "s", "other"});
  });
  std::vector<std::string> names;
  ForEachTable(tree, [&names](const Json& table, const std::vector<CteEntry>&) {
    names.push_back(std::string(TextMember(table, "schema_name")) + "." +
                    std::string(TextMember(table, "table_name")));
    if (!table.contains("qualified_name")) return;
    const Json wanted = names.back() == ".w" ? Json{"w"} : Json{"s", "other"};
    EXPECT_EQ(table["qualified_name"]["path"], wanted);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"s.other", "s.other", ".w"}));
}

TEST_P(DuckDbAst, AnOptionalMemberMayBeNull) {
  Json tree = Read("filter");
  Json& select = QueryNode(tree);
  EXPECT_TRUE(IsAbsent(select, "having"));
  EXPECT_FALSE(IsAbsent(select, "where_clause"));
  select.erase("where_clause");
  EXPECT_TRUE(IsAbsent(select, "where_clause"));
  EXPECT_FALSE(select.contains("where_clause"));
  EXPECT_TRUE(IsAbsent(select["select_list"], "having"));
}

TEST(DuckDbAstReader, HostileTreesAreErrors) {
  for (const std::string text :
       {"", "[]", "{}", "{\"statements\":[]}", "{\"statements\":[{\"node\":1}]}", "\xff\xfe"}) {
    EXPECT_THROW(ReadTree(text), Error) << text;
  }
  EXPECT_THROW(ReadTree(std::string(100000, '[')), Error);
  const Json unnamed = Json::parse(R"({"class":"COLUMN_REF","column_names":[1]})");
  EXPECT_THROW(ColumnPath(unnamed), Error);
}

INSTANTIATE_TEST_SUITE_P(Versions, DuckDbAst, testing::Values("1.5", "2.0"));

}  // namespace
}  // namespace quail::sql
