#include "plan/ai_views.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "plan/sql_writer.h"
#include "quail/error.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

void CteNames(Json& node, std::vector<std::string>& names) {
  for (const sql::CteEntry& entry : sql::CtesOf(node)) names.push_back(sql::LowerCase(entry.name));
  sql::ForEachChild(node, [&names](Json& child) { CteNames(child, names); });
}

/// Views with AI calls are the connection's: no schema's, and so also of main's name.
bool MayBeView(const Json& table, Catalog& catalog) {
  const std::string_view schema = sql::TextMember(table, "schema_name");
  const std::string_view database = sql::TextMember(table, "catalog_name");
  if (schema.empty()) return true;
  const std::string current = catalog.Row("SELECT current_database()").at(0);
  if (database.empty()) return sql::SameWord(schema, "main") || sql::SameWord(schema, current);
  return sql::SameWord(schema, "main") && sql::SameWord(database, current);
}

/// The tables, outside of those that WITH names, that a tree reads.
void TablesOf(Json& node, std::vector<std::string> own, std::vector<std::string>& tables) {
  for (const sql::CteEntry& entry : sql::CtesOf(node)) own.push_back(sql::LowerCase(entry.name));
  if (sql::TypeOf(node) == "BASE_TABLE" && sql::TextMember(node, "schema_name").empty()) {
    std::string name = sql::LowerCase(sql::TextMember(node, "table_name"));
    if (std::find(own.begin(), own.end(), name) == own.end()) tables.push_back(std::move(name));
  }
  sql::ForEachChild(node, [&](Json& child) { TablesOf(child, own, tables); });
}

/// In the place of its name a view's query would read the statement's WITH.
void RefuseShadowed(const std::string& view, Json query, const std::vector<std::string>& ctes) {
  std::vector<std::string> tables;
  TablesOf(query, {}, tables);
  for (const std::string& table : tables) {
    if (std::find(ctes.begin(), ctes.end(), table) == ctes.end()) continue;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("the view {0} reads {1}, which is also the name of a WITH of this "
                            "statement: not supported yet, give that another name",
                            view, table));
  }
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

std::string AiViews::NotFoundIn(std::string_view message) const {
  const std::string lower = sql::LowerCase(message);
  for (const auto& [name, view] : views_) {
    for (const std::string& written : {name, sql::QuoteIdentifier(name)}) {
      const std::string words = fmt::format(" with name {} does not exist", written);
      if (lower.find(words) != std::string::npos) return name;
    }
  }
  return "";
}

bool AiViews::Expand(Json& node, Catalog& catalog) const {
  if (views_.empty()) return false;
  std::vector<std::string> ctes;
  CteNames(node, ctes);
  return ExpandBelow(node, ctes, catalog);
}

bool AiViews::ExpandBelow(Json& node, const std::vector<std::string>& ctes,
                          Catalog& catalog) const {
  if (sql::TypeOf(node) == "BASE_TABLE") {
    const std::string name = sql::LowerCase(sql::TextMember(node, "table_name"));
    const auto view = views_.find(name);
    const bool cte = sql::TextMember(node, "schema_name").empty() &&
                     std::find(ctes.begin(), ctes.end(), name) != ctes.end();
    if (view == views_.end() || cte || !MayBeView(node, catalog)) return false;
    RefuseShadowed(name, view->second.query, ctes);
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
