#include "plan/ai_views.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "plan/cte_names.h"
#include "plan/result_names.h"
#include "plan/sql_writer.h"
#include "quail/error.h"
#include "sql/lexer.h"
#include "sql/token_view.h"

namespace quail::plan {

using sql::Json;

namespace {

/// In the place of its name a view's query would read the statement's WITH.
void KeepTables(const std::string& view, Json& query, const std::vector<sql::CteEntry>& ctes) {
  sql::ForEachTable(query, [&](Json& table, const std::vector<sql::CteEntry>& own) {
    const sql::CteEntry* hides = sql::FindCte(ctes, table);
    if (hides == nullptr || sql::FindCte(own, table) != nullptr) return;
    if (sql::TypeOf(*hides->query) == "RECURSIVE_CTE_NODE") {  // which keeps its name
      throw Error(ErrorCode::kUnsupported,
                  fmt::format("the view {0} reads {1}, which is also the name of a WITH RECURSIVE "
                              "of this statement: not supported yet, give that another name",
                              view, sql::LowerCase(sql::TextMember(table, "table_name"))));
    }
    table[sql::kTableMark] = true;
  });
}

/// Places in a view's own text mean nothing in the statement that names it.
void DropLocations(Json& node) {
  if (node.is_object()) node.erase("query_location");
  if (!node.is_structured()) return;
  for (Json& child : node) DropLocations(child);
}

bool Names(const Json& table, const AiView& view) {
  if (!sql::SameWord(sql::TextMember(table, "table_name"), view.name)) return false;
  const std::string_view schema = sql::TextMember(table, "schema_name");
  const std::string_view database = sql::TextMember(table, "catalog_name");
  if (schema.empty()) return view.current && !view.hidden;
  const bool same = sql::SameWord(schema, view.schema);
  if (!database.empty()) return same && sql::SameWord(database, view.database);
  const bool as_database = sql::SameWord(schema, view.database) && view.schema == "main";
  return (same && view.in_database) || as_database;
}

}  // namespace

std::string StandInOfView(std::string_view select, std::string_view query) {
  return fmt::format("{} FROM (SELECT error({}) AS {}, {}{}", select,
                     sql::QuoteString(kStandInError), kStandInColumn, sql::QuoteString(query),
                     kStandInMark);
}

std::string QueryOfStandIn(std::string_view create_sql) {
  for (const sql::Token& token : sql::Lex(create_sql, sql::EngineRules())) {
    const std::string_view after = create_sql.substr(token.offset + token.size);
    if (token.kind == sql::TokenKind::kString && after.starts_with(kStandInMark)) {
      return token.value;
    }
  }
  return "";
}

std::string WithoutStandIn(std::string_view create_sql) {
  if (create_sql.find(kStandInMark) == std::string_view::npos) return std::string(create_sql);
  const std::string query = QueryOfStandIn(create_sql);
  const std::vector<sql::Token> tokens = sql::Lex(create_sql, sql::EngineRules());
  const sql::TokenView view{create_sql, tokens};
  const auto as = view.FindAtTop(
      1, [&](std::size_t i) { return view.WordAt(i, "AS") && view.QueryBeginsAt(i + 1); });
  if (query.empty() || !as) return std::string(create_sql);
  return fmt::format("{}{};", create_sql.substr(0, tokens[*as + 1].offset), query);
}

/// Of one statement.
class AiViews::Expansion {
 public:
  Expansion(const AiViews& views, Catalog& catalog) : views_(views.list()), catalog_(catalog) {}

  bool Visit(Json& node) {
    bool found = false;
    std::set<const Json*> in_windows;
    AddWindowTables(node, false, in_windows);
    sql::ForEachTable(node, [&](Json& table, const std::vector<sql::CteEntry>& ctes) {
      found |= VisitTable(table, ctes, in_windows.contains(&table));
    });
    return found;
  }

  /// Puts the queries that PutAside kept into the WITH of the statement.
  void AddAside(Json& query) const {
    Json& entries = query["cte_map"]["map"];
    std::ptrdiff_t place = 0;
    for (const auto& [view, entry] : aside_) entries.insert(entries.begin() + place++, entry);
  }

 private:
  static void AddWindowTables(const Json& node, bool in_window, std::set<const Json*>& tables) {
    in_window |= sql::ClassOf(node) == "WINDOW";
    if (in_window && sql::TypeOf(node) == "BASE_TABLE") tables.insert(&node);
    if (!node.is_structured()) return;
    for (const Json& child : node) AddWindowTables(child, in_window, tables);
  }

  bool VisitTable(Json& table, const std::vector<sql::CteEntry>& ctes, bool in_window) {
    const auto view =
        std::ranges::find_if(views_, [&table](const AiView& known) { return Names(table, known); });
    if (sql::FindCte(ctes, table) != nullptr || view == views_.end()) return false;
    if (std::ranges::find(open_, &*view) != open_.end()) {
      throw Error(ErrorCode::kBind, fmt::format("the view {} reads itself", view->name));
    }
    open_.push_back(&*view);
    Json item = Item(*view, table, ctes);
    open_.pop_back();
    const bool has_window =
        sql::AnyNode(item, [](const Json& node) { return sql::ClassOf(node) == "WINDOW"; });
    if (in_window && has_window) {
      PutAside(*view, item, table);
    } else {
      table = std::move(item);
    }
    return true;
  }

  /// The engine takes no window below the definition of one, though it takes the name of what has
  /// one: the view becomes a query of the statement's WITH.
  void PutAside(const AiView& view, Json& item, Json& table) {
    const std::string name = fmt::format("quail_view{}", &view - views_.data());
    if (std::ranges::find(aside_, &view, &Aside::first) == aside_.end()) {
      Json tree = sql::ReadTree(
          catalog_.Parse(fmt::format("WITH {0} AS (SELECT * FROM x) SELECT * FROM {0}", name)));
      Json entry = sql::QueryNode(tree)["cte_map"]["map"][0];
      sql::ForEachTable(entry, [&](Json& place, const std::vector<sql::CteEntry>&) {
        item.erase("sample");
        item["column_name_alias"] = Json::array();
        place = std::move(item);
      });
      DropLocations(entry);
      aside_.emplace_back(&view, std::move(entry));
    }
    if (sql::AliasOf(table).empty()) table["alias"] = table["table_name"];
    sql::SetTableName(table, {"", "", name});
  }

  /// The view as a subquery of FROM, named as the table was.
  Json Item(const AiView& view, const Json& table, const std::vector<sql::CteEntry>& ctes) {
    const std::string_view alias = sql::AliasOf(table);
    const std::string_view name = alias.empty() ? sql::TextMember(table, "table_name") : alias;
    Json tree = Parse(view, name);
    if (!view.current || view.hidden) NameItsTables(tree, view);
    Visit(tree);
    KeepTables(view.name, tree, ctes);
    Json item = std::move(sql::QueryNode(tree)["from_table"]);
    DropLocations(item);
    const bool renamed = table.contains("column_name_alias") && !table["column_name_alias"].empty();
    if (renamed) item["column_name_alias"] = table["column_name_alias"];
    if (table.contains("sample")) item["sample"] = table["sample"];
    return item;
  }

  /// Places in the text of a view are none of the statement's.
  Json Parse(const AiView& view, std::string_view name) const {
    try {
      Json tree = sql::ReadTree(catalog_.Parse(
          fmt::format("SELECT * FROM ({}\n) AS {}", view.query, sql::QuoteIdentifier(name))));
      NameQueriesByText(tree, SqlWriter(catalog_));
      return tree;
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("in the view {}: {}", view.name, error.what()));
    }
  }

  /// Names in the query of a view are first looked for where the view is.
  void NameItsTables(Json& tree, const AiView& view) const {
    sql::ForEachTable(tree, [&](Json& table, const std::vector<sql::CteEntry>& ctes) {
      const bool told = !sql::TextMember(table, "catalog_name").empty();
      if (told || sql::FindCte(ctes, table) != nullptr) return;
      const std::string_view schema = sql::TextMember(table, "schema_name");
      const sql::TableName name{view.database, schema.empty() ? view.schema : std::string(schema),
                                std::string(sql::TextMember(table, "table_name"))};
      const std::string select =
          fmt::format("SELECT * FROM {}.{}.{}", sql::QuoteIdentifier(name.catalog),
                      sql::QuoteIdentifier(name.schema), sql::QuoteIdentifier(name.table));
      if (catalog_.Binds(select)) sql::SetTableName(table, name);
    });
  }

  const std::vector<AiView>& views_;
  Catalog& catalog_;
  std::vector<const AiView*> open_;  ///< whose queries are being put in place
  using Aside = std::pair<const AiView*, Json>;
  std::vector<Aside> aside_;  ///< entries of a WITH, each behind those that it reads
};

AiViews AiViews::Named(std::string_view name) const {
  std::vector<AiView> named;
  std::ranges::copy_if(views_, std::back_inserter(named),
                       [name](const AiView& view) { return sql::SameWord(view.name, name); });
  return AiViews(std::move(named));
}

bool AiViews::Expand(Json& node, Catalog& catalog) const {
  if (views_.empty()) return false;
  Expansion expansion(*this, catalog);
  if (!expansion.Visit(node)) return false;
  expansion.AddAside(sql::QueryNode(node));
  NameCtesApart(node);
  return true;
}

}  // namespace quail::plan
