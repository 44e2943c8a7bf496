#include "session/connection_catalog.h"

#include "fmt/format.h"
#include "relational/sql_json.h"
#include "session/describe.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {

columnar::Schema ConnectionCatalog::Columns(std::string_view select_sql) {
  return DescribeQuery(connection_, select_sql);
}

bool ConnectionCatalog::Binds(std::string_view select_sql) {
  bool binds = false;
  Quietly([&] {
    DescribeQuery(connection_, select_sql);
    binds = true;
  });
  return binds;
}

std::string ConnectionCatalog::Parse(std::string_view select_sql) {
  return relational::SerializeSql(connection_, select_sql);
}

std::string ConnectionCatalog::Print(std::string_view json) {
  return relational::DeserializeSql(connection_, json);
}

std::vector<std::string> ConnectionCatalog::Row(std::string_view select_sql) {
  const auto rows = relational::QueryText(connection_, std::string(select_sql));
  std::vector<std::string> row;
  for (const auto& cell : rows.at(0)) row.push_back(cell.value_or(""));
  return row;
}

bool ConnectionCatalog::HasFunction(std::string_view owner, std::string_view function) {
  const std::string key = fmt::format("{}.{}", sql::LowerCase(owner), function);
  if (known_.built_in.contains(key)) return true;
  const std::string name = sql::QuoteString(sql::LowerCase(owner));
  const std::string owned =
      fmt::format("(lower(schema_name) = {} OR lower(database_name) = {})", name, name);
  if (Row("SELECT count(*) FROM duckdb_schemas() WHERE " + owned).at(0) == "0") return false;
  const auto found =
      Row(fmt::format("SELECT count(*), count(*) FILTER (internal) FROM duckdb_functions() WHERE "
                      "lower(function_name) = {} AND {}",
                      sql::QuoteString(function), owned));
  if (found.at(1) != "0") known_.built_in.insert(key);
  return found.at(0) != "0";
}

bool ConnectionCatalog::IsScalar(std::string_view function) {
  if (!known_.scalars) {
    std::set<std::string> scalars;
    for (const auto& row : relational::QueryText(
             connection_,
             "SELECT lower(function_name) FROM duckdb_functions() GROUP BY ALL HAVING "
             "bool_and(internal AND function_type = 'scalar')")) {
      scalars.insert(row.at(0).value());
    }
    known_.scalars = std::move(scalars);
  }
  return known_.scalars->contains(std::string(function));
}

std::vector<plan::Macro> ConnectionCatalog::Macros() {
  if (known_.macros) return *known_.macros;
  std::vector<plan::Macro> macros;
  for (const auto& row : relational::QueryText(
           connection_,
           "SELECT function_name, CASE function_type WHEN 'macro' THEN 'SELECT ' ELSE '' END || "
           "macro_definition FROM duckdb_functions() WHERE NOT internal AND macro_definition IS "
           "NOT "
           "NULL")) {
    macros.push_back({row.at(0).value(), row.at(1).value()});
  }
  known_.macros = std::move(macros);
  return *known_.macros;
}

}  // namespace quail::session
