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

/// From a table whose other rows count: by windows, an order, a limit or a sample of all.
Twin QueryParts::CutRows(std::size_t depth) {
  static const std::vector<std::string> kPatterns = {
      "SELECT {0}.id AS id, CAST(row_number() OVER (PARTITION BY {2} ORDER BY {0}.id) AS INTEGER) "
      "AS k, CAST(count(*) FILTER (WHERE {3}) OVER (ORDER BY {0}.id ROWS 1 PRECEDING) AS INTEGER) "
      "AS n, lag({0}.x) OVER (ORDER BY {0}.id) AS x, {0}.y AS y FROM {1} AS {0} WHERE {4}",
      "SELECT {0}.* FROM {1} AS {0} WHERE {4} QUALIFY row_number() OVER (PARTITION BY {2} ORDER BY "
      "{0}.id DESC) = 1",
      "SELECT {0}.* FROM {1} AS {0} QUALIFY {4} AND count(*) OVER (PARTITION BY {2}) > 1",
      "SELECT DISTINCT ON ({2}) {0}.* FROM {1} AS {0} WHERE {4} ORDER BY {3}, {0}.id",
      "SELECT DISTINCT ON ({0}.k) * FROM {1} AS {0} ORDER BY {0}.k, {3}, {0}.id",
      "FROM {1} AS {0} SELECT {0}.* REPLACE (CASE WHEN {2} THEN 1 ELSE 0 END AS n) WHERE {4}",
      "SELECT * FROM {1} AS {0} ORDER BY {3}, {0}.id LIMIT 3 OFFSET 1",
      "SELECT * FROM {1} AS {0} ORDER BY {0}.n, {0}.id LIMIT 50%",
      "SELECT * FROM {1} AS {0} TABLESAMPLE bernoulli(100%) WHERE {4}",
      "FROM {1} AS {0} WHERE {4} ORDER BY {0}.id LIMIT 4",
      "SELECT unnest([{0}.id * 2, {0}.id * 2 + 1]) AS id, {0}.k AS k, max({0}.n) OVER (ORDER BY "
      "{0}.id) AS n, {0}.x AS x, {0}.y AS y FROM {1} AS {0} WHERE {4}"};
  const std::string alias = NewAlias();
  const Scope inner = {{alias, true}};
  const auto condition = [&] { return Condition(inner, depth > 0 && dice_.OneIn(2) ? 1 : 0); };
  return Format(dice_.Pick(kPatterns), Same(alias), Same(dice_.Pick(world_.tables)), condition(),
                condition(), condition());
}

Twin QueryParts::AnyRows(std::size_t depth) {
  switch (dice_.Below(12)) {
    case 8:
    case 9:
      return CutRows(depth);
    case 6:
      return StructRows(depth);
    case 7:
      return dice_.OneIn(4) ? ValueRows() : UnnestedRows(depth);
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
