#include "plan/exists_form.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "plan/ai_call.h"
#include "plan/from_items.h"
#include "plan/lazy_calls.h"
#include "plan/name_scope.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

bool HasQuery(const Json& node) { return sql::AnyNode(node, sql::IsQueryNode); }

/// Whether an expression has one value a row, and the same one each time.
bool IsPlain(const Json& node, const NameScope& scope) {
  const Reads reads = scope.ReadsOf(node);
  return !reads.has_subquery && !reads.is_volatile && !reads.aggregates && !ContainsAiCall(node);
}

bool IsInner(const Json& join) {
  const std::string_view form = sql::TextMember(join, "ref_type");
  return sql::TextMember(join, "join_type") == "INNER" && join["using_columns"].empty() &&
         (form == "REGULAR" || form == "CROSS");
}

/// Whether the rows of FROM are those of its items, paired, that meet conditions.
bool HasInnerJoinsOnly(const Json& from) {
  if (sql::TypeOf(from) != "JOIN") return true;
  return IsInner(from) && HasInnerJoinsOnly(from["left"]) && HasInnerJoinsOnly(from["right"]);
}

/// Whether a condition can be tested on one row after the other until one meets it.
bool CanStop(const Json& condition) { return !HasQuery(condition) && HoldsUndecided(condition); }

/// Whether conditions of FROM ask; nullopt where one cannot stop.
std::optional<bool> AsksInConditions(const Json& from) {
  if (sql::TypeOf(from) != "JOIN") return false;
  if (!CanStop(from["condition"])) return std::nullopt;
  const auto left = AsksInConditions(from["left"]);
  const auto right = AsksInConditions(from["right"]);
  if (!left || !right) return std::nullopt;
  return *left || *right || ContainsAiCall(from["condition"]);
}

void DropConditions(Json& from, const Json& truth) {
  if (sql::TypeOf(from) != "JOIN") return;
  if (from["condition"].is_object()) from["condition"] = truth;
  for (const char* side : {"left", "right"}) DropConditions(from[side], truth);
}

/// Whether a SEMI, ANTI, FULL or positional join is at or below `node`, nested queries included.
bool HasLoneSideJoin(const Json& node) {
  return sql::AnyNode(node, [](const Json& inner) {
    const std::string_view type = sql::TextMember(inner, "join_type");
    const bool lone = type == "SEMI" || type == "ANTI" || type == "FULL" ||
                      sql::TextMember(inner, "ref_type") == "POSITIONAL";
    return sql::TypeOf(inner) == "JOIN" && lone;
  });
}

/// Whether order and repetitions are all that the modifiers of a query are about.
bool KeepsTheSet(const Json& modifiers) {
  return std::all_of(modifiers.begin(), modifiers.end(), [](const Json& modifier) {
    if (sql::TypeOf(modifier) == "ORDER_MODIFIER") return true;
    return sql::TypeOf(modifier) == "DISTINCT_MODIFIER" &&
           modifier.value("distinct_on_targets", Json::array()).empty();
  });
}

/// Whether IN and = compare values of two types in the same way.
bool CompareAlike(std::string_view type, std::string_view other) {
  constexpr std::array<std::string_view, 5> kIntegers = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT",
                                                         "HUGEINT"};
  const auto is_integer = [&](std::string_view name) {
    return std::find(kIntegers.begin(), kIntegers.end(), name) != kIntegers.end();
  };
  return type == other || (is_integer(type) && is_integer(other));
}

class ExistsForm {
 public:
  ExistsForm(BindState& state, Json& select, const std::vector<VisibleCte>& ctes)
      : state_(state), writer_(state.writer), select_(select), ctes_(ctes) {}

  void Apply() {
    MoveLastJoins();
    if (select_["where_clause"].is_object()) VisitFilter(select_["where_clause"]);
  }

 private:
  // --- SEMI and ANTI joins ---

  void MoveLastJoins() {
    while (CanMove(select_["from_table"])) {
      Json join = std::move(select_["from_table"]);
      const bool anti = sql::TextMember(join, "join_type") == "ANTI";
      Json query = writer_.MakeSelect({writer_.ParseExpression("1")}, std::move(join["right"]),
                                      {std::move(join["condition"])});
      select_["from_table"] = std::move(join["left"]);
      std::vector<Json> terms;
      if (select_["where_clause"].is_object()) terms.push_back(std::move(select_["where_clause"]));
      terms.push_back(Exists(std::move(query), anti));
      select_["where_clause"] = writer_.MakeAnd(std::move(terms));
    }
  }

  bool CanMove(const Json& from) const {
    if (sql::TypeOf(from) != "JOIN" || sql::TextMember(from, "ref_type") != "REGULAR") return false;
    const std::string_view type = sql::TextMember(from, "join_type");
    if ((type != "SEMI" && type != "ANTI") || !from["using_columns"].empty()) return false;
    const Json& condition = from["condition"];
    // In a correlated query the engine does not find the columns that a lambda's body names.
    return condition.is_object() && ContainsAiCall(condition) && CanStop(condition) &&
           !sql::HasClass(condition, "LAMBDA") && HasInnerJoinsOnly(from["right"]) &&
           AsksInConditions(from["right"]).has_value() && CanCorrelate(from["right"]);
  }

  Json Exists(Json query, bool negated) const {
    Json exists = writer_.ParseExpression(negated ? "NOT EXISTS (SELECT 1)" : "EXISTS (SELECT 1)");
    Json& subquery = sql::ClassOf(exists) == "SUBQUERY" ? exists : exists["children"][0];
    subquery["subquery"]["node"] = std::move(query);
    return exists;
  }

  // --- IN ---

  void VisitFilter(Json& node) {
    const std::string_view type = sql::TypeOf(node);
    if (type == "CONJUNCTION_AND" || type == "CONJUNCTION_OR") {
      for (Json& child : node["children"]) VisitFilter(child);
      return;
    }
    const bool negated = type == "OPERATOR_NOT";
    Json& in = negated ? node["children"][0] : node;
    if (sql::TextMember(in, "subquery_type") != "ANY" ||
        sql::TextMember(in, "comparison_type") != "COMPARE_EQUAL") {
      return;
    }
    Json query = in["subquery"]["node"];
    const auto names = NamesOf(in, query);
    if (!names) return;
    query["select_list"] = {writer_.ParseExpression("1")};
    query["modifiers"] = Json::array();
    node = negated ? NotIn(*names, query) : With(query, Equality(*names), false);
  }

  /// What an IN compares.
  struct Names {
    Json x;
    Json e;
  };

  std::optional<Names> NamesOf(const Json& in, Json& query) const {
    if (sql::TypeOf(query) != "SELECT_NODE" || !AsksByItself(query)) return std::nullopt;
    const auto column = OuterColumn(in["child"]);
    if (!column) return std::nullopt;
    Json from = query["from_table"];
    if (NamesAiCte(from, ctes_) || ContainsAiCall(WithoutConditions(from))) return std::nullopt;
    const FromTree tree = ReadFrom(from, state_.source);
    const NameScope scope(tree, state_.source, state_.volatile_macros);
    const Json& e = query["select_list"][0];
    if (!IsPlain(e, scope)) return std::nullopt;
    const auto described = Describe({e, writer_.star()}, WithoutConditions(from));
    if (!described || !CompareAlike((*described)[0].type, column->type)) return std::nullopt;
    // The outer column's name must mean the same inside.
    const bool hidden = FindColumn(*described, column->table) > 0 ||
                        std::any_of(tree.items.begin(), tree.items.end(), [&](const auto& item) {
                          return sql::SameWord(item.alias, column->table);
                        });
    if (hidden || !CanCorrelate(from)) return std::nullopt;
    Names names{in["child"], e};
    names.x["column_names"] = {column->table, column->name};
    names.x["alias"] = names.e["alias"] = "";
    return names;
  }

  static bool AsksByItself(Json& query) {
    for (const char* part : {"having", "qualify", "sample"}) {
      if (!sql::IsAbsent(query, part)) return false;
    }
    const bool plain = query["select_list"].size() == 1 && query["group_expressions"].empty() &&
                       query["cte_map"]["map"].empty() && KeepsTheSet(query["modifiers"]);
    const auto in_joins = AsksInConditions(query["from_table"]);
    if (!plain || !in_joins || !HasInnerJoinsOnly(query["from_table"])) return false;
    const Json& where = query["where_clause"];
    return CanStop(where) && (*in_joins || ContainsAiCall(where));
  }

  struct Column {
    std::string table;
    std::string name;
    std::string type;
  };

  /// The column of this block's FROM that an expression is.
  std::optional<Column> OuterColumn(const Json& expression) const {
    const std::vector<std::string> path = sql::ColumnPath(expression);
    if (path.empty() || path.size() > 2) return std::nullopt;
    const FromTree tree = ReadFrom(select_["from_table"], state_.source);
    std::vector<Column> found;
    for (const FromItem& item : tree.items) {
      if (path.size() == 2 && !sql::SameWord(item.alias, path[0])) continue;
      if (!item.visible || item.alias.empty() || ContainsAiCall(*item.node)) continue;
      const auto columns = Describe({writer_.star()}, *item.node);
      if (!columns) return std::nullopt;
      const int column = FindColumn(*columns, path.back());
      if (column < 0) continue;
      found.push_back({item.alias, path.back(), (*columns)[static_cast<std::size_t>(column)].type});
    }
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

  Json WithoutConditions(Json from) const {
    DropConditions(from, writer_.truth());
    return from;
  }

  /// nullopt: it reads more than tables.
  std::optional<columnar::Schema> Describe(std::vector<Json> list, Json from) const {
    Json select = writer_.MakeSelect(std::move(list), std::move(from), {});
    for (const VisibleCte& cte : ctes_) {
      if (!cte.has_ai) select["cte_map"]["map"].push_back(*cte.entry);
    }
    try {
      return state_.catalog.Columns(writer_.PrintQuery(select));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted) throw;
      return std::nullopt;
    }
  }

  /// Whether the engine takes a correlated subquery over a FROM: over rows of a WITH it refuses
  /// some kinds of joins there, however deep. It is not asked: that error would end a transaction.
  bool CanCorrelate(const Json& from) const { return !HasLoneSideJoin(from) || !NamesCte(from); }

  bool NamesCte(const Json& node) const {
    if (node.is_object() && node.contains("cte_map") && !node["cte_map"]["map"].empty())
      return true;
    const std::string_view table = sql::TextMember(node, "table_name");
    const bool named = std::any_of(ctes_.begin(), ctes_.end(), [table](const VisibleCte& cte) {
      return sql::SameWord(cte.name, table);
    });
    if (named) return true;
    return node.is_structured() && std::any_of(node.begin(), node.end(), [this](const Json& child) {
             return NamesCte(child);
           });
  }

  Json Equality(const Names& names) const {
    Json equality = writer_.ParseExpression("quail_e = quail_x");
    equality["left"] = names.e;
    equality["right"] = names.x;
    return equality;
  }

  Json IsNull(const Json& expression) const {
    Json test = writer_.ParseExpression("quail_e IS NULL");
    test["children"][0] = expression;
    return test;
  }

  /// [NOT] EXISTS of the query's rows that meet a term too.
  Json With(Json query, Json term, bool negated) const {
    std::vector<Json> terms{std::move(term)};
    if (query["where_clause"].is_object()) terms.push_back(std::move(query["where_clause"]));
    query["where_clause"] = writer_.MakeAnd(std::move(terms));
    return Exists(std::move(query), negated);
  }

  Json NotIn(const Names& names, const Json& query) const {
    return writer_.MakeAnd({With(query, Equality(names), true), With(query, IsNull(names.e), true),
                            With(query, IsNull(names.x), true)});
  }

  BindState& state_;
  const SqlWriter& writer_;
  Json& select_;
  const std::vector<VisibleCte>& ctes_;
};

}  // namespace

void UseExists(BindState& state, Json& select, const std::vector<VisibleCte>& ctes) {
  ExistsForm(state, select, ctes).Apply();
}

}  // namespace quail::plan
