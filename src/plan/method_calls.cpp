#include "plan/method_calls.h"

#include <string>
#include <string_view>

#include "plan/result_names.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

bool HasSchema(const Json& node) {
  return sql::ClassOf(node) == "FUNCTION" && !sql::TextMember(node, "schema").empty();
}

bool AnyHasSchema(const Json& node) { return sql::AnyNode(node, HasSchema); }

void SpellMethodCall(Json& node, Catalog& catalog, const SqlWriter& writer) {
  const std::string schema(sql::TextMember(node, "schema"));
  const std::string table(sql::TextMember(node, "catalog"));
  if (catalog.HasFunction(schema, sql::FunctionName(node))) return;
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
