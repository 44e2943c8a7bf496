#include "plan/method_calls.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "plan/result_names.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

bool HasSchema(const Json& node) {
  return sql::ClassOf(node) == "FUNCTION" && !sql::TextMember(node, "schema").empty();
}

bool AnyHasSchema(const Json& node) {
  if (HasSchema(node)) return true;
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(),
                     [](const Json& child) { return AnyHasSchema(child); });
}

/// `schema` may be a database's name, too.
bool IsFunctionOf(std::string_view schema, const Json& node, Catalog& catalog) {
  const std::string owner = sql::QuoteString(sql::LowerCase(schema));
  const auto row = catalog.Row(
      fmt::format("SELECT count(*) FROM duckdb_functions() WHERE lower(function_name) = {} AND "
                  "(lower(schema_name) = {} OR lower(database_name) = {})",
                  sql::QuoteString(sql::FunctionName(node)), owner, owner));
  return row.at(0) != "0";
}

void SpellMethodCall(Json& node, Catalog& catalog, const SqlWriter& writer) {
  const std::string schema(sql::TextMember(node, "schema"));
  const std::string table(sql::TextMember(node, "catalog"));
  if (IsFunctionOf(schema, node, catalog)) return;
  Json column = writer.ParseExpression(table.empty() ? sql::QuoteIdentifier(schema)
                                                     : ColumnSql(table, schema));
  if (node.contains("query_location")) column["query_location"] = node["query_location"];
  node["schema"] = "";
  node["catalog"] = "";
  if (node.contains("arguments")) {
    Json argument;
    argument["name"] = "";
    argument["expression"] = std::move(column);
    node["arguments"].insert(node["arguments"].begin(), std::move(argument));
  } else {
    node["children"].insert(node["children"].begin(), std::move(column));
  }
}

void SpellBelow(Json& node, Catalog& catalog, const SqlWriter& writer) {
  if (sql::TypeOf(node) == "SELECT_NODE") NameByText(node, AnyHasSchema, writer);
  if (HasSchema(node)) SpellMethodCall(node, catalog, writer);
  sql::ForEachChild(node, [&](Json& child) { SpellBelow(child, catalog, writer); });
}

}  // namespace

void SpellMethodCalls(Json& tree, Catalog& catalog, const SqlWriter& writer) {
  if (AnyHasSchema(tree)) SpellBelow(tree, catalog, writer);
}

}  // namespace quail::plan
