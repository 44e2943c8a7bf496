#include "session/connection_catalog.h"

#include "relational/sql_json.h"
#include "session/describe.h"
#include "session/user_position.h"

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

std::vector<plan::Macro> ConnectionCatalog::Macros() {
  std::vector<plan::Macro> macros;
  for (const auto& row : relational::QueryText(
           connection_,
           "SELECT function_name, CASE function_type WHEN 'macro' THEN 'SELECT ' ELSE '' END || "
           "macro_definition FROM duckdb_functions() WHERE NOT internal AND macro_definition IS "
           "NOT "
           "NULL")) {
    macros.push_back({row.at(0).value(), row.at(1).value()});
  }
  return macros;
}

}  // namespace quail::session
