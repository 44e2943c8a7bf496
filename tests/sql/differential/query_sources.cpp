#include "query_parts.h"

namespace quail::test {

Twin QueryParts::Item(Scope& scope, std::size_t depth) {
  const std::string alias = NewAlias();
  if (!extra_tables_.empty() && dice_.OneIn(2)) {
    scope.push_back({alias});
    return Same(fmt::format("{} AS {}", dice_.Pick(extra_tables_), alias));
  }
  if (depth == 0 || !dice_.OneIn(5)) {
    scope.push_back({alias, true});
    const char* schema = dice_.OneIn(4) ? "memory.main." : "";
    return Same(fmt::format("{}{} AS {}", schema, dice_.Pick(world_.tables), alias));
  }
  if (dice_.OneIn(8)) {
    scope.push_back({alias});
    return Same(
        fmt::format("(VALUES (1, 0, 2, 'red', NULL), (2, NULL, 2, 'blue', 'red')) AS "
                    "{}(id, k, n, x, y)",
                    alias));
  }
  const Twin rows = dice_.OneIn(4) ? RowsWithMore() : AnyRows(depth - 1);
  scope.push_back({alias});
  return Format("({}) AS {}", rows, Same(alias));
}

/// Rows that depend on those of the FROM items before it.
Twin QueryParts::Lateral(Scope& scope) {
  const std::string alias = NewAlias();
  const std::string table = NewAlias();
  const Scope inner = {{table, true}};
  const Twin where = Condition(Seen(inner, scope, true), 0);
  const std::string columns =
      fmt::format("{0}.id AS id, {0}.k AS k, {0}.n AS n, {0}.x AS x", table);
  const Twin lateral =
      Format(", LATERAL (SELECT {}, {} AS y FROM {} AS {} WHERE {}) AS {}", Same(columns),
             Same(Text(scope)), Same(dice_.Pick(world_.tables)), Same(table), where, Same(alias));
  scope.push_back({alias});
  return lateral;
}

Twin QueryParts::From(Scope& scope, std::size_t depth, std::size_t items) {
  static const std::vector<std::string> kJoins = {
      "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"};
  Twin from = Item(scope, depth);
  for (std::size_t i = 1; i < items; ++i) {
    if (depth > 0 && dice_.OneIn(12)) {
      from = Format("{}{}", from, Lateral(scope));
      continue;
    }
    const std::size_t kind = dice_.Below(9);
    Twin item = Item(scope, depth);
    if (kind >= kJoins.size()) {
      from = Format(kind == kJoins.size() ? "{} CROSS JOIN {}" : "{}, {}", from, item);
      continue;
    }
    const std::string& join = kJoins[kind];
    if (kind < 5 && dice_.OneIn(4)) {
      const std::string columns = dice_.OneIn(4) ? "k, n" : "k";
      from = Format("{} {} {} USING ({})", from, Same(join), item, Same(columns));
      continue;
    }
    const Twin on = Condition(scope, depth > 0 ? 1 : 0);
    from = Format("{} {} {} ON {}", from, Same(join), item, JoinCondition(scope, join, on));
    if (join == "SEMI JOIN" || join == "ANTI JOIN") scope.back().visible = false;
  }
  return from;
}

/// DuckDB takes no subquery in the ON of some outer joins: those get one without.
Twin QueryParts::JoinCondition(const Scope& scope, const std::string& join, const Twin& on) {
  const bool subquery = on.plain.find("SELECT") != std::string::npos;
  if (subquery && join != "JOIN") return Concatenation(scope);
  if (join == "JOIN" && dice_.OneIn(5)) return Format("{} AND {}", on, InSubquery(scope, 0));
  // Equal keys beside a call, as joins usually have.
  if (scope.size() < 2 || !dice_.OneIn(4)) return on;
  return Format("{}.k = {}.k AND {}", Same(scope.front().alias), Same(scope.back().alias), on);
}

// --- queries ---

Twin QueryParts::Rows(std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1);
  const Twin k = dice_.OneIn(3) ? Format("CASE WHEN {} THEN 1 ELSE 0 END", Condition(inner, depth))
                                : Same(Number(inner));
  const std::string id = Column(inner, "id");
  const Twin rows = Format("SELECT {} AS id, {} AS k, {} AS n, {} AS x, {} AS y FROM {} WHERE {}",
                           Same(id), k, Same(Number(inner)), Same(Text(inner)), Same(Text(inner)),
                           from, Condition(inner, depth));
  if (!dice_.OneIn(6)) return rows;
  return Format("{} ORDER BY {} LIMIT {}", rows, Same(id), Same(dice_.Below(6)));
}

Twin QueryParts::GroupedRows(std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1 + dice_.Below(2));
  const Twin n = dice_.OneIn(2) ? Format("CAST(count(*) FILTER (WHERE {}) AS INTEGER)",
                                         Condition(inner, depth))
                                : Same(fmt::format("max({})", Number(inner)));
  Twin rows = Format(
      "SELECT {} AS id, min({}) AS k, {} AS n, max({}) AS x, min({}) AS y FROM {} WHERE {} GROUP "
      "BY 1",
      Same(Column(inner, "id")), Same(Number(inner)), n, Same(Text(inner)), Same(Text(inner)), from,
      Condition(inner, depth));
  return dice_.OneIn(2) ? Format("{} HAVING {}", rows, GroupCondition(inner)) : rows;
}

Twin QueryParts::UnitedRows(std::size_t depth) {
  static const std::vector<std::string> kOperations = {"UNION", "UNION ALL", "EXCEPT", "INTERSECT"};
  const std::string alias = NewAlias();
  return Format(
      "SELECT {0} AS id, min({1}.k) AS k, max({1}.n) AS n, max({1}.x) AS x, min({1}.y) AS "
      "y FROM (({2}) {3} ({4})) AS {1} GROUP BY 1",
      Same(alias + ".id"), Same(alias), Rows(depth), Same(dice_.Pick(kOperations)), Rows(depth));
}

/// From a struct without names.
Twin QueryParts::StructRows(std::size_t depth) {
  const std::string alias = NewAlias();
  return Format(
      "SELECT {0}.s[1] AS id, {0}.s[2] AS k, {0}.n AS n, {0}.x AS x, {0}.y AS y FROM "
      "(SELECT *, (id, k) AS s FROM {1}) AS {0} WHERE {2}",
      Same(alias), Same(dice_.Pick(world_.tables)), Condition({{alias}}, depth));
}

/// With columns that nobody reads, or only some of them.
Twin QueryParts::RowsWithMore() {
  const std::string alias = NewAlias();
  const Scope inner = {{alias, true}};
  const Twin columns = dice_.OneIn(2)
                           ? Same(alias + ".*")
                           : Format("id, CASE WHEN {} THEN 1 ELSE 0 END AS k, n, upper(x) AS x, y",
                                    Condition(inner, 0));
  const std::string end = dice_.OneIn(3) ? " ORDER BY id LIMIT 4" : "";
  return Format("SELECT {}, {} AS more, {} AS most FROM {} AS {}{}",
                dice_.OneIn(2) ? Same("*") : columns, Condition(inner, 1), Call(inner, 1),
                Same(dice_.Pick(world_.tables)), Same(alias), Same(end));
}

Twin QueryParts::AnyRows(std::size_t depth) {
  switch (dice_.Below(7)) {
    case 6:
      return StructRows(depth);
    case 0:
      return UnitedRows(depth);
    case 1:
    case 2:
      return GroupedRows(depth);
    default:
      return Rows(depth);
  }
}

}  // namespace quail::test
