#include "plan/ai_views.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "plan/sql_writer.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

void CteNames(Json& node, std::vector<std::string>& names) {
  for (const sql::CteEntry& entry : sql::CtesOf(node)) names.push_back(sql::LowerCase(entry.name));
  sql::ForEachChild(node, [&names](Json& child) { CteNames(child, names); });
}

/// Places in a view's own text mean nothing in the statement that names it.
void DropLocations(Json& node) {
  if (node.is_object()) node.erase("query_location");
  if (!node.is_structured()) return;
  for (Json& child : node) DropLocations(child);
}

}  // namespace

bool AiViews::contains(std::string_view name) const {
  return views_.contains(sql::LowerCase(name));
}

void AiViews::Keep(const std::string& name, Json query, std::vector<std::string> columns) {
  DropLocations(query);
  views_[sql::LowerCase(name)] = {std::move(query), std::move(columns)};
}

bool AiViews::Drop(std::string_view name) { return views_.erase(sql::LowerCase(name)) > 0; }

bool AiViews::Expand(Json& node, Catalog& catalog) const {
  if (views_.empty()) return false;
  std::vector<std::string> ctes;
  CteNames(node, ctes);
  return ExpandBelow(node, ctes, catalog);
}

bool AiViews::ExpandBelow(Json& node, const std::vector<std::string>& ctes,
                          Catalog& catalog) const {
  if (sql::TypeOf(node) == "BASE_TABLE" && sql::TextMember(node, "schema_name").empty()) {
    const std::string name = sql::LowerCase(sql::TextMember(node, "table_name"));
    const auto view = views_.find(name);
    if (view == views_.end() || std::find(ctes.begin(), ctes.end(), name) != ctes.end()) {
      return false;
    }
    node = Item(view->second, node, catalog);
    return true;
  }
  bool found = false;
  sql::ForEachChild(node, [&](Json& child) { found |= ExpandBelow(child, ctes, catalog); });
  return found;
}

/// The view as a subquery of FROM, named as the table was.
Json AiViews::Item(const View& view, const Json& table, Catalog& catalog) const {
  const std::string_view alias = sql::AliasOf(table);
  const std::string_view name = alias.empty() ? sql::TextMember(table, "table_name") : alias;
  std::string columns;
  for (const std::string& column : view.columns) {
    columns += fmt::format("{}{}", columns.empty() ? "(" : ", ", sql::QuoteIdentifier(column));
  }
  if (!columns.empty()) columns += ")";
  const std::string sql =
      fmt::format("SELECT * FROM ({}) AS {}{}", SqlWriter(catalog).PrintQuery(view.query),
                  sql::QuoteIdentifier(name), columns);
  Json tree = sql::ReadTree(catalog.Parse(sql));
  Json item = std::move(sql::QueryNode(tree)["from_table"]);
  DropLocations(item);
  const bool renamed = table.contains("column_name_alias") && !table["column_name_alias"].empty();
  if (renamed) item["column_name_alias"] = table["column_name_alias"];
  if (table.contains("sample")) item["sample"] = table["sample"];
  return item;
}

}  // namespace quail::plan
