#include "plan/narrow_from.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/ai_call.h"
#include "plan/from_queries.h"
#include "plan/row_values.h"
#include "plan/volatile_functions.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// The columns that a part of a statement may read, by name in lower case.
struct ReadNames {
  std::map<std::string, std::size_t> times;
  bool all = false;  ///< by a star or a number

  bool Has(std::string_view name) const { return all || times.contains(sql::LowerCase(name)); }
};

/// A star, or the number of a column (`#1`, also what ARRAY(SELECT ..) is parsed to).
bool ReadsByPlace(const Json& node) {
  return sql::ClassOf(node) == "STAR" || sql::ClassOf(node) == "POSITIONAL_REFERENCE";
}

/// Stars and numbers in a query within are about its own FROM.
void AddNames(const Json& node, const Json* skipped, bool within, ReadNames& names) {
  if (&node == skipped) return;
  if (ReadsByPlace(node) && !within) names.all = true;
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

/// Whether the rows of a query are those of its FROM that meet its WHERE, or some of them where it
/// may have a `limit`.
bool GivesItsRows(const Json& query, bool limit) {
  if (!query.value("group_expressions", Json()).empty() ||
      !query.value("group_sets", Json()).empty())
    return false;
  if (sql::TextMember(query, "aggregate_handling") != "STANDARD_HANDLING") return false;
  if (!sql::IsAbsent(query, "having") || !sql::IsAbsent(query, "qualify")) return false;
  if (!sql::IsAbsent(query, "sample") || !query.contains("modifiers")) return false;
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
    if (!from.inner || !GivesItsRows(*from.query, false)) return;
    const bool of_rows = std::ranges::all_of((*from.query)["select_list"], [&](const Json& item) {
      return IsOfEachRow(item, catalog_);
    });
    if (!of_rows) return;
    const Place place{around, from, *names, nested};
    MoveTerms(around, place);
    TakeLimit(place);
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
      CheckAiCalls(list[i], source_);
      if (nothing_.is_null()) nothing_ = writer_.ParseExpression("CAST(NULL AS BOOLEAN)");
      list[i] = nothing_;
      list[i]["alias"] = own;
    }
  }

  static bool ReadElsewhere(const std::string& alias, const Json& item, const ReadNames& inside) {
    const auto all = inside.times.find(sql::LowerCase(alias));
    if (alias.empty() || all == inside.times.end()) return false;
    const ReadNames own = NamesIn(item);
    const auto mine = own.times.find(sql::LowerCase(alias));
    return mine == own.times.end() || mine->second != all->second;
  }

  /// The name of an item alone is the whole row; without one the engine calls it
  /// unnamed_subquery, the next one unnamed_subquery2 ..
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
    if (sql::IsAbsent(around, "where_clause") || !sql::IsAbsent(around, "sample")) return;
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
      if (moves) {
        moved.push_back(std::move(inside));
      } else {
        kept.push_back(*term);
      }
    }
    if (moved.empty()) return;
    if (!sql::IsAbsent(query, "where_clause")) moved.insert(moved.begin(), query["where_clause"]);
    query["where_clause"] = writer_.MakeAnd(std::move(moved));
    around["where_clause"] = writer_.MakeAnd(std::move(kept));
  }

  /// LIMIT, with the order that it follows, leaves the same rows inside, where it spares calls.
  void TakeLimit(const Place& place) {
    const Json& around = place.around;
    Json& query = *place.from.query;
    const bool alone = place.from.item == &around["from_table"];
    if (!alone || !GivesItsRows(around, true) || !sql::IsAbsent(around, "where_clause")) return;
    const Json& modifiers = around["modifiers"];
    if (modifiers.empty() || modifiers.size() > 2 || !query["modifiers"].empty()) return;
    const Json& limit = modifiers.back();
    if (sql::TypeOf(limit) != "LIMIT_MODIFIER" || sql::IsAbsent(limit, "limit")) return;
    const auto count = ConstantCount(limit, "limit");
    const auto offset = ConstantCount(limit, "offset");
    const bool of_rows = std::ranges::all_of(
        around["select_list"], [&](const Json& item) { return IsOfEachRow(item, catalog_); });
    if (!count || !offset || !of_rows) return;
    Json taken = Json::array();
    if (modifiers.size() == 2) {
      taken.push_back(modifiers[0]);
      if (!SpellOrder(taken[0], place)) return;
    }
    taken.push_back(limit);
    taken.back()["limit"] = writer_.ParseExpression(std::to_string(*count + *offset));
    taken.back()["offset"] = nullptr;
    query["modifiers"] = std::move(taken);
  }

  bool SpellOrder(Json& modifier, const Place& place) {
    if (sql::TypeOf(modifier) != "ORDER_MODIFIER") return false;
    return std::ranges::all_of(modifier["orders"], [&](Json& order) {
      Json& expression = order["expression"];
      const bool renamed = sql::AnyNode(expression, [&](const Json& node) {
        const std::vector<std::string> column = sql::ColumnPath(node);
        return column.size() == 1 && IsSelectAlias(place.around, column[0]);
      });
      return !renamed && !ContainsAiCall(expression) && IsOfEachRow(expression, catalog_) &&
             IsRepeatable(expression, {}) && sql::HasClass(expression, "COLUMN_REF") &&
             !sql::HasClass(expression, "LAMBDA") && SpellInside(expression, place);
    });
  }

  static void AddTerms(const Json& condition, std::vector<const Json*>& terms) {
    if (sql::TypeOf(condition) != "CONJUNCTION_AND") return terms.push_back(&condition);
    for (const Json& term : condition["children"]) AddTerms(term, terms);
  }

  /// Writes the columns of a term as the query in FROM has them; false where one is not its own.
  static bool SpellInside(Json& node, const Place& place) {
    const std::vector<std::string> path = sql::ColumnPath(node);
    if (!path.empty()) return SpellColumn(node, path, place);
    if (ReadsByPlace(node)) return false;
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
      const bool one = meant.size() == 1 && !sql::HasStar(list);
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
    if (!sql::HasStar(list) || sql::TypeOf(query["from_table"]) == "JOIN") return false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool star = sql::ClassOf(list[i]) == "STAR";
      if (star ? !IsPlainStar(list[i]) : place.names[i].empty()) return false;
    }
    return !IsSelectAlias(place.around, name);
  }

  static bool IsPlainStar(const Json& star) {
    for (const char* key :
         {"exclude_list", "replace_list", "rename_list", "qualified_exclude_list"}) {
      if (star.contains(key) && !star[key].empty()) return false;
    }
    return sql::IsAbsent(star, "expr") && !star.value("columns", false) &&
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
