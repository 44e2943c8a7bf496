#include <fstream>
#include <string>
#include <vector>

#include "engine.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

/// What is printed as SQL is read as the same tree: over every query of the records.
namespace quail::plan {
namespace {

using sql::Json;

struct Query {
  std::string place;
  std::string sql;
  Dialect dialect = Dialect::kSnowflake;
};

/// The statements of a file of records that should run.
std::vector<Query> QueriesOf(const std::filesystem::path& path) {
  std::vector<Query> queries;
  std::ifstream file(path);
  Dialect dialect = Dialect::kSnowflake;
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("dialect ")) {
      dialect = FindDialect(line.substr(std::string_view("dialect ").size())).value();
    } else if (line == "statement ok" || line.starts_with("query ")) {
      inside = true;
      queries.push_back({path.filename().string() + ":" + std::to_string(number), "", dialect});
    } else if (line.empty() || line == "----") {
      inside = false;
    } else if (inside) {
      queries.back().sql += line + "\n";
    }
  }
  return queries;
}

bool IsTruth(const Json& node) {
  const auto constant = sql::ConstantOf(node);
  return constant && constant->kind == sql::ConstantKind::kBoolean && constant->boolean;
}

/// Without what is about the text only, and what the engine prints in another way that means the
/// same: a cross join as the inner join that it is, TRUE as a cast of 't', VALUES as a subquery.
Json Meaning(Json node) {
  if (node.is_structured()) {
    for (Json& child : node) child = Meaning(child);
  }
  if (!node.is_object()) return node;
  node.erase("query_location");
  if (sql::TextMember(node, "ref_type") == "CROSS") {
    node["ref_type"] = "REGULAR";
    node["condition"] = nullptr;
  }
  if (sql::TypeOf(node) == "JOIN" && IsTruth(node["condition"])) node["condition"] = nullptr;
  if (sql::ClassOf(node) == "CAST" && node["cast_type"].value("id", "") == "BOOLEAN") {
    const auto text = sql::ConstantOf(node["child"]);
    if (text && (text->text == "t" || text->text == "f")) {
      Json truth = node["child"];
      truth["value"]["type"] = node["cast_type"];
      truth["value"]["value"] = text->text == "t";
      return truth;
    }
  }
  if (sql::TypeOf(node) == "SUBQUERY" && sql::AliasOf(node) == "valueslist") {
    return node["subquery"]["node"]["from_table"];
  }
  return node;
}

class RoundTripTest : public EngineTest {};

TEST_F(RoundTripTest, WhatIsPrintedIsReadAsTheSameTree) {
  const SqlWriter writer(*catalog_);
  std::size_t count = 0;
  const auto folder = std::filesystem::path(QUAIL_SOURCE_DIR) / "tests" / "sql";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".test") continue;
    for (const Query& query : QueriesOf(entry.path())) {
      const auto parts = sql::SplitScript(query.sql, query.dialect);
      const sql::Statement statement = sql::ReadStatement(query.sql, parts.at(0), query.dialect);
      if (statement.kind != sql::StatementKind::kQuery) continue;
      Json tree = sql::ReadTree(catalog_->Parse(statement.query));
      const std::string printed = writer.PrintQuery(sql::QueryNode(tree));
      Json again = sql::ReadTree(catalog_->Parse(printed));
      EXPECT_TRUE(Meaning(sql::QueryNode(tree)) == Meaning(sql::QueryNode(again)))
          << query.place << "\n"
          << printed << "\n"
          << Json::diff(Meaning(sql::QueryNode(tree)), Meaning(sql::QueryNode(again))).dump();
      ++count;
    }
  }
  EXPECT_GT(count, 250U);
}

}  // namespace
}  // namespace quail::plan
