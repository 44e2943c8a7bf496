#include "plan/narrow_from.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/ai_call.h"
#include "plan/row_values.h"
#include "plan/volatile_functions.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// A query among the items of FROM.
struct FromQuery {
  Json* item = nullptr;
  Json* query = nullptr;
  bool inner = false;  ///< no join above it adds rows without it, or takes some by their position
};

/// The columns that a part of a statement may read, by name in lower case.
struct ReadNames {
  std::map<std::string, std::size_t> times;
  bool all = false;  ///< by a star

  bool Has(std::string_view name) const { return all || times.contains(sql::LowerCase(name)); }
};

/// The stars of a query within read its own FROM.
void AddNames(const Json& node, const Json* skipped, bool within, ReadNames& names) {
  if (&node == skipped) return;
  if (sql::ClassOf(node) == "STAR" && !within) names.all = true;
  for (const std::string& name : sql::ColumnPath(node)) ++names.times[sql::LowerCase(name)];
  if (node.is_object() && node.contains("using_columns")) {
    for (const Json& name : node["using_columns"]) {
      if (name.is_string()) ++names.times[sql::LowerCase(name.get<std::string>())];
    }
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) {
    AddNames(child, skipped, within || sql::IsQueryNode(child), names);
  }
}

ReadNames NamesIn(const Json& node, const Json* skipped = nullptr) {
  ReadNames names;
  AddNames(node, skipped, false, names);
  return names;
}

bool IsNull(const Json& node, const char* key) {
  return !node.contains(key) || node[key].is_null();
}

bool IsEmpty(const Json& node, const char* key) { return !node.contains(key) || node[key].empty(); }

bool IsInnerJoin(const Json& join) {
  const std::string_view form = sql::TextMember(join, "ref_type");
  return sql::TextMember(join, "join_type") == "INNER" && (form == "REGULAR" || form == "CROSS");
}

/// The queries of WITH that one FROM reads, by name in lower case.
using ReadOnce = std::map<std::string, Json*>;

void CollectCtes(Json& node, std::map<std::string, std::vector<Json*>>& found) {
  std::size_t entry = 0;
  for (const sql::CteEntry& cte : sql::CtesOf(node)) {
    const bool renamed = !IsEmpty(node["cte_map"]["map"][entry++]["value"], "aliases");
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

/// By which columns of an item may be qualified; empty: by none that is known here.
std::string_view NameOf(const Json& item) {
  const std::string_view alias = sql::AliasOf(item);
  return alias.empty() ? sql::TextMember(item, "table_name") : alias;
}

/// False where FROM has items whose columns are not named by those who read them.
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

/// Whether the rows of a query are those of its FROM that meet its WHERE, or some of them where it
/// may have a `limit`.
bool GivesItsRows(const Json& query, bool limit) {
  if (!IsEmpty(query, "group_expressions") || !IsEmpty(query, "group_sets")) return false;
  if (sql::TextMember(query, "aggregate_handling") != "STANDARD_HANDLING") return false;
  if (!IsNull(query, "having") || !IsNull(query, "qualify")) return false;
  if (!IsNull(query, "sample") || !query.contains("modifiers")) return false;
  return std::ranges::all_of(query["modifiers"], [limit](const Json& modifier) {
    const std::string_view type = sql::TypeOf(modifier);
    return type == "ORDER_MODIFIER" || (limit && type == "LIMIT_MODIFIER");
  });
}

bool OrdersByPosition(const Json& query) {
  return std::ranges::any_of(query["modifiers"], [](const Json& modifier) {
    return modifier.contains("orders") &&
           std::ranges::any_of(modifier["orders"], [](const Json& order) {
             return sql::ConstantOf(order["expression"]) || sql::HasClass(order, "STAR");
           });
  });
}

/// The names by which the columns are known outside, empty where that is not told here; nullopt
/// where positions are not either.
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

/// A query in FROM as the SELECT around it sees it.
struct Place {
  const Json& around;
  const FromQuery& from;
  const std::vector<std::string>& names;  ///< of its columns, see NamesOutside
  bool nested = false;                    ///< columns of queries further out may be read
};

class Narrowing {
 public:
  Narrowing(Catalog& catalog, const SqlWriter& writer, const SourceText& source, ReadOnce ctes)
      : catalog_(catalog), writer_(writer), source_(source), ctes_(std::move(ctes)) {}

  /// `nested`: as in Place.
  void Visit(Json& node, bool nested) {
    if (sql::TypeOf(node) == "SELECT_NODE" && node.contains("from_table")) {
      std::vector<FromQuery> queries;
      if (CollectQueries(node["from_table"], true, ctes_, queries)) {
        for (const FromQuery& from : queries) Narrow(node, from, nested);
      }
    }
    sql::ForEachChild(node, [&](Json& child) {
      Visit(child, nested || sql::ClassOf(child) == "SUBQUERY" || sql::TypeOf(child) == "JOIN");
    });
  }

 private:
  void Narrow(Json& around, const FromQuery& from, bool nested) {
    const auto names = NamesOutside(from);
    if (!names) return;
    DropUnread(around, from, *names);
    if (from.inner && GivesItsRows(*from.query, false))
      MoveTerms(around, {around, from, *names, nested});
  }

  void DropUnread(const Json& around, const FromQuery& from,
                  const std::vector<std::string>& names) {
    Json& query = *from.query;
    if (!GivesItsRows(query, true) || OrdersByPosition(query)) return;
    const ReadNames outside = NamesIn(around, from.query);
    const std::string_view alias = NameOf(*from.item);
    if (outside.all || ReadsRow(around, from.query, alias)) return;
    Json& list = query["select_list"];
    // What stands in FROM does not know the names that the list gives.
    const ReadNames inside = NamesIn(query, &query["from_table"]);
    const std::size_t renamed = from.item->value("column_name_alias", Json::array()).size();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::vector<std::string> path = sql::ColumnPath(list[i]);
      std::string own(sql::AliasOf(list[i]));
      if (own.empty() && !path.empty()) own = path.back();
      // A column may come from a call further in.
      const bool may_ask = !path.empty() || ContainsAiCall(list[i]);
      const bool named = !own.empty() || i < renamed;
      if (!may_ask || !named || outside.Has(names[i])) continue;
      if (ReadElsewhere(own, list[i], inside) || !IsOfEachRow(list[i], catalog_)) continue;
      CheckCalls(list[i]);
      if (nothing_.is_null()) nothing_ = writer_.ParseExpression("CAST(NULL AS BOOLEAN)");
      list[i] = nothing_;
      list[i]["alias"] = own;
    }
  }

  /// What is wrong with a call is told although nobody reads it.
  void CheckCalls(const Json& item) const {
    Json calls = item;
    const auto check = [&](auto& self, Json& node) -> void {
      if (IsAiCall(node)) ReadAiCall(node, source_);
      sql::ForEachChild(node, [&](Json& child) { self(self, child); });
    };
    check(check, calls);
  }

  static bool ReadElsewhere(const std::string& alias, const Json& item, const ReadNames& inside) {
    const auto all = inside.times.find(sql::LowerCase(alias));
    if (alias.empty() || all == inside.times.end()) return false;
    const ReadNames own = NamesIn(item);
    const auto mine = own.times.find(sql::LowerCase(alias));
    return mine == own.times.end() || mine->second != all->second;
  }

  /// The name of an item alone is the whole row; without one the engine calls it unnamed_subquery,
  /// the next one unnamed_subquery2 ..
  static bool ReadsRow(const Json& node, const Json* skipped, std::string_view alias) {
    if (&node == skipped) return false;
    const std::vector<std::string> path = sql::ColumnPath(node);
    const bool named =
        path.size() == 1 && (alias.empty() ? sql::LowerCase(path[0]).starts_with("unnamed_subquery")
                                           : sql::SameWord(path[0], alias));
    if (named) return true;
    return node.is_structured() && std::ranges::any_of(node, [&](const Json& child) {
             return ReadsRow(child, skipped, alias);
           });
  }

  /// Moves the conditions about plain columns into the query.
  void MoveTerms(Json& around, const Place& place) {
    Json& query = *place.from.query;
    const Json& list = query["select_list"];
    if (IsNull(around, "where_clause") || !IsNull(around, "sample")) return;
    const bool of_rows =
        std::ranges::all_of(list, [&](const Json& item) { return IsOfEachRow(item, catalog_); });
    if (!of_rows) return;
    std::vector<const Json*> terms;
    AddTerms(around["where_clause"], terms);
    std::vector<Json> moved;
    std::vector<Json> kept;
    for (const Json* term : terms) {
      Json inside = *term;
      const bool plain = !ContainsAiCall(inside) && IsOfEachRow(inside, catalog_) &&
                         IsRepeatable(inside, {}) && !sql::HasClass(inside, "LAMBDA") &&
                         !sql::HasClass(inside, "PARAMETER") && sql::HasClass(inside, "COLUMN_REF");
      const bool moves = plain && SpellInside(inside, place);
      (moves ? moved : kept).push_back(moves ? std::move(inside) : *term);
    }
    if (moved.empty()) return;
    if (!IsNull(query, "where_clause")) moved.insert(moved.begin(), query["where_clause"]);
    query["where_clause"] = writer_.MakeAnd(std::move(moved));
    around["where_clause"] = writer_.MakeAnd(std::move(kept));
  }

  static void AddTerms(const Json& condition, std::vector<const Json*>& terms) {
    if (sql::TypeOf(condition) != "CONJUNCTION_AND") return terms.push_back(&condition);
    for (const Json& term : condition["children"]) AddTerms(term, terms);
  }

  /// Writes the columns of a term as the query in FROM has them; false where one is not its own.
  static bool SpellInside(Json& node, const Place& place) {
    const std::vector<std::string> path = sql::ColumnPath(node);
    if (!path.empty()) return SpellColumn(node, path, place);
    if (sql::ClassOf(node) == "STAR") return false;
    if (!node.is_structured()) return true;
    return std::ranges::all_of(node, [&](Json& child) { return SpellInside(child, place); });
  }

  static bool SpellColumn(Json& node, const std::vector<std::string>& path, const Place& place) {
    const bool alone = place.from.item == &place.around["from_table"];
    const bool qualified = path.size() == 2 && sql::SameWord(path[0], NameOf(*place.from.item));
    if (!qualified && !(alone && path.size() == 1)) return false;
    const Json& list = (*place.from.query)["select_list"];
    const auto named = [&](std::size_t i) {
      return sql::ClassOf(list[i]) != "STAR" && sql::SameWord(place.names[i], path.back());
    };
    std::vector<const Json*> meant;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (named(i)) meant.push_back(&list[i]);
    }
    if (meant.empty()) {
      if (place.nested && !qualified) return false;
      if (!ComesByStar(path.back(), place)) return false;
      node["column_names"] = Json::array({path.back()});
    } else {
      const bool one = meant.size() == 1 && !HasStar(list);
      if (!one || ContainsAiCall(*meant[0]) || !IsRepeatable(*meant[0], {})) return false;
      node = Json(*meant[0]);
    }
    node["alias"] = "";
    return true;
  }

  /// Whether a column that no item of the list is named like is one of the only table in FROM.
  static bool ComesByStar(std::string_view name, const Place& place) {
    const Json& query = *place.from.query;
    const Json& list = query["select_list"];
    if (!HasStar(list) || sql::TypeOf(query["from_table"]) == "JOIN") return false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool star = sql::ClassOf(list[i]) == "STAR";
      if (star ? !IsPlainStar(list[i]) : place.names[i].empty()) return false;
    }
    return !IsSelectAlias(place.around, name);
  }

  static bool HasStar(const Json& list) {
    return std::ranges::any_of(list, [](const Json& item) { return sql::ClassOf(item) == "STAR"; });
  }

  static bool IsPlainStar(const Json& star) {
    for (const char* key :
         {"exclude_list", "replace_list", "rename_list", "qualified_exclude_list"}) {
      if (star.contains(key) && !star[key].empty()) return false;
    }
    return IsNull(star, "expr") && !star.value("columns", false) &&
           sql::TextMember(star, "relation_name").empty();
  }

  static bool IsSelectAlias(const Json& select, std::string_view name) {
    return std::ranges::any_of(select["select_list"], [name](const Json& item) {
      return sql::SameWord(sql::AliasOf(item), name);
    });
  }

  Catalog& catalog_;
  const SqlWriter& writer_;
  const SourceText& source_;
  ReadOnce ctes_;
  Json nothing_;
};

}  // namespace

void NarrowFromQueries(Json& tree, Catalog& catalog, const SqlWriter& writer,
                       const SourceText& source) {
  if (!ContainsAiCall(tree)) return;
  Narrowing(catalog, writer, source, CtesReadOnce(tree)).Visit(tree, false);
}

}  // namespace quail::plan
