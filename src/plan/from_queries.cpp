#include "plan/from_queries.h"

#include <utility>

#include "plan/result_names.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

bool IsInnerJoin(const Json& join) {
  const std::string_view form = sql::TextMember(join, "ref_type");
  return sql::TextMember(join, "join_type") == "INNER" && (form == "REGULAR" || form == "CROSS");
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
  return plain && sql::IsAbsent(item, "sample") ? query : nullptr;
}

}  // namespace

ReadOnce CtesReadOnce(Json& tree) {
  std::map<std::string, std::vector<sql::CteEntry>> ctes;
  for (sql::CteEntry& cte : sql::AllCtesOf(tree)) {
    ctes[sql::LowerCase(cte.name)].push_back(std::move(cte));
  }
  if (ctes.empty()) return {};
  std::map<std::string, std::size_t> times;
  sql::ForEachTable(tree, [&](const Json& table, const std::vector<sql::CteEntry>& known) {
    if (sql::FindCte(known, table) != nullptr) {
      ++times[sql::LowerCase(sql::TextMember(table, "table_name"))];
    }
  });
  ReadOnce once;
  for (const auto& [name, entries] : ctes) {
    const auto found = times.find(name);
    const bool read_once = found != times.end() && found->second == 1;
    if (read_once && entries.size() == 1 && !entries[0].renamed) once[name] = entries[0].query;
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
    const std::vector<std::string> path = sql::ColumnPath(list[i]);
    std::string name(sql::AliasOf(list[i]));
    const bool columns = HasNamesOfColumns(list[i]);
    const bool many = columns || sql::FunctionName(list[i]) == "unnest";  // of a struct's members
    if ((many && !renamed.empty()) || (columns && !name.empty())) return std::nullopt;
    if (name.empty() && !path.empty()) name = path.back();
    if (i < renamed.size()) name = renamed[i].get<std::string>();
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace quail::plan
