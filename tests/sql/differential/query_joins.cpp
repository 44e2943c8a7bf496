#include "query_parts.h"

namespace quail::test {

/// Rows that depend on those of the FROM items before it.
Twin QueryParts::LateralRows(const Scope& scope) {
  const std::string table = NewAlias();
  const Scope inner = {{table, true}};
  const Twin from = Same(fmt::format("{} AS {}", dice_.Pick(world_.tables), table));
  const Twin where = Condition(Seen(inner, scope, true), 0);
  const Twin y = Same(Text(scope));
  switch (dice_.Below(4)) {
    case 0:
      return Format("SELECT * FROM {} WHERE {} ORDER BY {}.id DESC LIMIT 1", from, where,
                    Same(table));
    case 1:
      return Format(
          "SELECT min({0}.id) AS id, CAST(count(*) AS INTEGER) AS k, max({0}.n) AS n, min({0}.x) "
          "AS x, {1} AS y FROM {2} WHERE {3}",
          Same(table), Same(fmt::format("max({}.y)", table)), from, where);
    default:
      return Format(
          "SELECT {0}.id AS id, {0}.k AS k, {0}.n AS n, {0}.x AS x, {1} AS y FROM {2} WHERE {3}",
          Same(table), y, from, where);
  }
}

Twin QueryParts::Lateral(Scope& scope) {
  const std::string alias = NewAlias();
  const Twin rows = LateralRows(scope);
  scope.push_back({alias});
  const Twin item = Format("LATERAL ({}) AS {}", rows, Same(alias));
  switch (dice_.Below(5)) {
    case 0:
      return Format(" CROSS JOIN {}", item);
    case 1:
      return Format(" LEFT JOIN {} ON TRUE", item);
    case 2:
      return Format(" LEFT JOIN {} ON {}", item,
                    Same(fmt::format("{}.k = {}.n", scope.front().alias, alias)));
    case 3:
      return Format(" JOIN {} ON {}", item, Condition(scope, 0));
    default:
      return Format(", {}", item);
  }
}

/// The first two items, by rules of the join's own. A POSITIONAL JOIN is about the order of the
/// input, as row ids are.
Twin QueryParts::RuledJoin(Scope& scope, std::size_t depth) {
  static const std::vector<std::string> kNatural = {"", "LEFT ", "RIGHT ", "FULL "};
  const bool positional = world_.row_ids && dice_.OneIn(3);
  const Twin left = Item(scope, positional ? 0 : depth);
  const Twin right = Item(scope, positional ? 0 : depth);
  if (positional && extra_tables_.empty()) return Format("{} POSITIONAL JOIN {}", left, right);
  if (dice_.OneIn(2)) {
    return Format("{} NATURAL {}JOIN {}", left, Same(dice_.Pick(kNatural)), right);
  }
  return AsOf(left, right, scope);
}

/// Of each row before it the one of `right` that is next to it; ids tell them apart.
Twin QueryParts::AsOf(const Twin& left, const Twin& right, const Scope& scope) {
  static const std::vector<std::string> kNearest = {">=", ">", "<=", "<"};
  const Source& nearest = scope.back();
  const std::string by =
      fmt::format("{}.id {} {}.id", scope.front().alias, dice_.Pick(kNearest), nearest.alias);
  const Twin also =
      dice_.OneIn(2)
          ? Format("{} = {} AND ", Condition({scope.front()}, 0), Condition({nearest}, 0))
      : dice_.OneIn(2) ? Same(fmt::format("{}.k = {}.k AND ", scope.front().alias, nearest.alias))
                       : Twin{};
  return Format("{} ASOF {}JOIN {} ON {}{}", left, Same(dice_.OneIn(2) ? "LEFT " : ""), right, also,
                Same(by));
}

Twin QueryParts::From(Scope& scope, std::size_t depth, std::size_t items) {
  static const std::vector<std::string> kJoins = {
      "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"};
  const bool ruled = items > 1 && dice_.OneIn(10);
  Twin from = ruled ? RuledJoin(scope, depth) : Item(scope, depth);
  for (std::size_t i = ruled ? 2 : 1; i < items; ++i) {
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

}  // namespace quail::test
