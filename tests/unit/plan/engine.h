#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fmt/format.h"
#include "plan/binder.h"
#include "plan/catalog.h"
#include "relational/connection.h"
#include "relational/sql_json.h"
#include "sql/lexer.h"
#include "sql/statement.h"
#include "test_paths.h"

namespace quail::plan {

/// Binding over a real engine. A process holds one DuckDB: QUAIL_TEST_ENGINE names the folder of
/// the other version.
class EngineCatalog : public Catalog {
 public:
  explicit EngineCatalog(relational::Connection& connection) : connection_(connection) {}

  columnar::Schema Columns(std::string_view sql) override {
    constexpr std::string_view kDescribe = "DESCRIBE ";
    columnar::Schema schema;
    try {
      const std::string describe = std::string(kDescribe).append(sql);
      for (const auto& row : relational::QueryText(connection_, describe)) {
        schema.push_back({row.at(0).value(), row.at(1).value()});
      }
    } catch (const Error& error) {
      if (!error.position() || error.position()->offset < kDescribe.size()) throw;
      TextPosition place = *error.position();
      place.offset -= kDescribe.size();
      throw Error(error.code(), error.what(), place);
    }
    return schema;
  }
  bool Binds(std::string_view sql) override {
    try {
      Columns(sql);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  std::string Parse(std::string_view sql) override {
    return relational::SerializeSql(connection_, sql);
  }
  std::string Print(std::string_view json) override {
    return relational::DeserializeSql(connection_, json);
  }
  std::vector<std::string> Row(std::string_view sql) override {
    const auto rows = relational::QueryText(connection_, std::string(sql));
    std::vector<std::string> row;
    for (const auto& cell : rows.at(0)) row.push_back(cell.value_or(""));
    return row;
  }
  bool HasFunction(std::string_view owner, std::string_view function) override {
    const std::string name = sql::QuoteString(owner);
    return Row(fmt::format("SELECT count(*) FROM duckdb_functions() WHERE function_name = {} AND "
                           "(schema_name = {} OR database_name = {})",
                           sql::QuoteString(function), name, name))
               .at(0) != "0";
  }
  bool IsScalar(std::string_view function) override {
    return Row(fmt::format(
                   "SELECT count(*) FILTER (function_type <> 'scalar') = 0 AND count(*) > 0 "
                   "FROM duckdb_functions() WHERE function_name = {}",
                   sql::QuoteString(function)))
               .at(0) == "true";
  }
  std::vector<Macro> Macros() override { return {}; }

 private:
  relational::Connection& connection_;
};

/// A connection with the lookups; every text's id is its order of appearance, every verdict comes
/// from `verdicts` (the text's first argument to TRUE or FALSE; absent: NULL).
class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* chosen = std::getenv("QUAIL_TEST_ENGINE");
    const std::string engine = chosen != nullptr ? chosen : "duckdb";
    const std::string library = std::string(QUAIL_DEPS_DIR) + "/" + engine + "/libduckdb.so";
    if (!std::filesystem::exists(library)) GTEST_SKIP() << "skipped: no " << library;
    relational::DuckDbOptions options;
    options.library_path = library;
    connection_ = relational::OpenDuckDb(options);
    catalog_ = std::make_unique<EngineCatalog>(*connection_);
    RegisterLookups();
  }

  void Run(const std::string& sql) { relational::QueryText(*connection_, sql); }
  /// All cells of a result, joined by `|` and newlines; NULL is `-`.
  std::string Rows(const std::string& sql) {
    std::string out;
    for (const auto& row : relational::QueryText(*connection_, sql)) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0) out += "|";
        out += row[i].value_or("-");
      }
      out += "\n";
    }
    return out;
  }

  LogicalPlan Bind(const std::string& script, Dialect dialect = Dialect::kSnowflake) {
    const auto parts = sql::SplitScript(script, dialect);
    const sql::Statement statement = sql::ReadStatement(script, parts.at(0), dialect);
    return plan::Bind({script, statement, "quail_"}, *catalog_);
  }

  /// The error of binding a statement.
  Error BindError(const std::string& script, Dialect dialect = Dialect::kSnowflake) {
    try {
      Bind(script, dialect);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error: " << script;
    return {ErrorCode::kUsage, ""};
  }

  /// Makes relations, reductions and the pair tables, those from the verdicts of all pairs of rows.
  void Make(const LogicalPlan& plan) {
    for (const Relation& relation : plan.relations) Run(relation.create_sql);
    for (const std::string& sql : plan.reduction_sql) Run(sql);
    for (const std::string& sql : plan.pair_tables_sql) Run(sql);
    for (const AiConjunct& conjunct : plan.ai_conjuncts) {
      if (conjunct.pairs) Run(FillSql(plan, conjunct));
    }
  }
  void Drop(const LogicalPlan& plan) {
    for (const std::string& sql : plan.cleanup_sql) Run(sql);
  }
  /// Makes all that the result reads, then the result; cleans up.
  std::string RowsOf(const LogicalPlan& plan) {
    Make(plan);
    const std::string rows = Rows(plan.final_sql);
    Drop(plan);
    return rows;
  }

  std::unique_ptr<relational::Connection> connection_;
  std::unique_ptr<EngineCatalog> catalog_;
  std::unordered_map<std::string, bool> verdicts_;

 private:
  static std::string FillSql(const LogicalPlan& plan, const AiConjunct& conjunct);
  void RegisterLookups();
  std::optional<bool> Verdict(std::span<const relational::ScalarColumn> arguments, std::size_t row);

  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::string> texts_;
};

/// One text per line of a plan, for comparisons.
inline std::string Join(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace quail::plan
