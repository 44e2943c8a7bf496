#include "query_statements.h"

namespace quail::test {
namespace {

std::string Table(QueryParts& parts) { return parts.dice().Pick(parts.world().tables); }

}  // namespace

RandomQuery PreparedQuery(QueryParts& parts) {
  Dice& dice = parts.dice();
  Scope scope;
  const Twin from = parts.From(scope, 1, 1 + dice.Below(2));
  const std::string text = parts.Text(scope);
  const Twin call = {fmt::format("AI_FILTER(PROMPT('{{0}} has {{1}}', {}, $1))", text),
                     fmt::format("ref_filter('{{0}} has {{1}}', {}, CAST($1 AS VARCHAR))", text)};
  RandomQuery query;
  query.ordered = true;
  query.before.push_back(
      Format("PREPARE s AS SELECT {}, {}, $3 AS w FROM {} WHERE ({} {} {}) AND {} > $2 ORDER BY {} "
             "LIMIT $2 "
             "+ 3",
             Same(parts.Column(scope, "id")), parts.SelectItem(scope, 1), from,
             parts.Condition(scope, 1), Same(dice.OneIn(2) ? "AND" : "OR"), call,
             Same(parts.Number(scope)), Same(parts.Order(scope))));
  static const std::vector<std::string> kTexts = {"'red'", "NULL", "''", "'1'"};
  query.sql = Same(
      fmt::format("EXECUTE s({}, {}, {})", dice.Pick(kTexts), dice.Below(2), dice.Pick(kTexts)));
  return query;
}

/// Macros around calls and of rows.
RandomQuery MacroQuery(QueryParts& parts) {
  static const std::vector<std::string> kMacros = {
      "m(a, b) AS CASE WHEN a THEN b ELSE NOT b END", "m(a, b) AS (a OR b) AND a IS NOT NULL",
      "m(a, b) AS coalesce(a, b, FALSE)", "m(a, b := TRUE) AS a = b",
      // The names of its own FROM would hide those of an argument.
      "m(a, b) AS (SELECT bool_or(a AND q.c > 0 OR b) FROM (SELECT k FROM t0) AS q(c))"};
  Dice& dice = parts.dice();
  Scope scope;
  RandomQuery query;
  const std::string row = parts.NewAlias();
  query.before.push_back(Same("CREATE OR REPLACE TEMP MACRO " + dice.Pick(kMacros)));
  query.before.push_back(Same(fmt::format(
      "CREATE OR REPLACE TEMP MACRO r(least) AS TABLE SELECT * FROM {} AS {} WHERE {}.id >= least",
      Table(parts), row, row)));
  Twin from = parts.From(scope, 1, 1);
  if (dice.OneIn(2)) {
    const std::string alias = parts.NewAlias();
    from = Format("{}, r({}) AS {}", from, Same(dice.Below(3)), Same(alias));
    scope.push_back({alias});
  }
  const auto macro = [&] {
    return Format("m({}, {})", parts.Condition(scope, 1), parts.Condition(scope, 0));
  };
  query.sql = Format("SELECT {}, {} FROM {} WHERE {}", Same(parts.Column(scope, "id")), macro(),
                     from, dice.OneIn(2) ? macro() : parts.Condition(scope, 1));
  return query;
}

/// A view in two places.
RandomQuery TwiceViewed(QueryParts& parts) {
  RandomQuery query;
  query.before.push_back(Format("CREATE OR REPLACE TEMP VIEW v AS {}", parts.AnyRows(1)));
  Scope scope = {{"a"}, {"b"}};
  static const std::vector<std::string> kJoins = {"JOIN", "LEFT JOIN", "FULL JOIN"};
  query.sql = Format("SELECT a.id, b.id, {} FROM v AS a {} v AS b ON {}",
                     parts.SelectItem(scope, 1), Same(parts.dice().Pick(kJoins)),
                     parts.dice().OneIn(2) ? Same("a.k = b.n") : parts.Call(scope, 0));
  if (parts.dice().OneIn(2)) {
    query.sql = Format("{} WHERE {}", query.sql, parts.Condition(scope, 1));
  }
  return query;
}

}  // namespace quail::test
