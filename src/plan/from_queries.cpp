#include "plan/from_queries.h"

#include <utility>

#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

bool IsInnerJoin(const Json& join) {
  const std::string_view form = sql::TextMember(join, "ref_type");
  return sql::TextMember(join, "join_type") == "INNER" && (form == "REGULAR" || form == "CROSS");
}

void CollectCtes(Json& node, std::map<std::string, std::vector<Json*>>& found) {
  std::size_t entry = 0;
  for (const sql::CteEntry& cte : sql::CtesOf(node)) {
    const bool renamed =
        !node["cte_map"]["map"][entry++]["value"].value("aliases", Json::array()).empty();
    found[sql::LowerCase(cte.name)].push_back(renamed ? nullptr : cte.query);
  }
  sql::ForEachChild(node, [&found](Json& child) { CollectCtes(child, found); });
}

void CountTables(const Json& node, std::map<std::string, std::size_t>& times) {
  if (sql::TypeOf(node) == "BASE_TABLE" && sql::TextMember(node, "schema_name").empty()) {
    ++times[sql::LowerCase(sql::TextMember(node, "table_name"))];
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) CountTables(child, times);
}

/// The query that an item of FROM is; null for other items.
Json* QueryOf(Json& item, const ReadOnce& ctes) {
  const std::string_view type = sql::TypeOf(item);
  Json* query = nullptr;
  if (type == "SUBQUERY" && item.contains("subquery") && item["subquery"].contains("node")) {
    query = &item["subquery"]["node"];
  } else if (type == "BASE_TABLE" && sql::TextMember(item, "schema_name").empty()) {
    const auto cte = ctes.find(sql::LowerCase(sql::TextMember(item, "table_name")));
    if (cte != ctes.end()) query = cte->second;
  }
  const bool plain = query != nullptr && sql::TypeOf(*query) == "SELECT_NODE";
  return plain && IsNull(item, "sample") ? query : nullptr;
}

}  // namespace

bool IsNull(const Json& node, const char* key) {
  return !node.contains(key) || node[key].is_null();
}

ReadOnce CtesReadOnce(Json& tree) {
  std::map<std::string, std::vector<Json*>> ctes;
  CollectCtes(tree, ctes);
  if (ctes.empty()) return {};
  std::map<std::string, std::size_t> times;
  CountTables(tree, times);
  ReadOnce once;
  for (const auto& [name, queries] : ctes) {
    const auto found = times.find(name);
    const bool read_once = found != times.end() && found->second == 1;
    if (read_once && queries.size() == 1 && queries[0] != nullptr) once[name] = queries[0];
  }
  return once;
}

bool CollectQueries(Json& from, bool inner, const ReadOnce& ctes, std::vector<FromQuery>& found) {
  const std::string_view type = sql::TypeOf(from);
  if (type == "JOIN") {
    const bool below = inner && IsInnerJoin(from);
    return sql::TextMember(from, "ref_type") != "NATURAL" &&
           CollectQueries(from["left"], below, ctes, found) &&
           CollectQueries(from["right"], below, ctes, found);
  }
  if (Json* query = QueryOf(from, ctes); query != nullptr) found.push_back({&from, query, inner});
  return type == "BASE_TABLE" || type == "EMPTY" || type == "TABLE_FUNCTION" ||
         type == "SUBQUERY" || type == "EXPRESSION_LIST";
}

std::string_view NameOf(const Json& item) {
  const std::string_view alias = sql::AliasOf(item);
  return alias.empty() ? sql::TextMember(item, "table_name") : alias;
}

std::optional<std::vector<std::string>> NamesOutside(const FromQuery& from) {
  const Json& list = (*from.query)["select_list"];
  const Json renamed = from.item->value("column_name_alias", Json::array());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (sql::ClassOf(list[i]) == "STAR" && !renamed.empty()) return std::nullopt;
    const std::vector<std::string> path = sql::ColumnPath(list[i]);
    std::string name(sql::AliasOf(list[i]));
    if (name.empty() && !path.empty()) name = path.back();
    if (i < renamed.size()) name = renamed[i].get<std::string>();
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace quail::plan
