#include "query_parts.h"

namespace quail::test {

// --- leaves ---

std::string QueryParts::Column(const Scope& scope, const char* name) {
  std::vector<std::string> visible;
  for (const Source& source : scope) {
    if (source.visible) visible.push_back(source.alias);
  }
  // Unqualified it may be the name of an item of the select list too.
  if (visible.size() == 1 && dice_.OneIn(6)) return name;
  return fmt::format("{}.{}", dice_.Pick(visible), name);
}

std::string QueryParts::RowId(const Scope& scope) {
  for (const Source& source : scope) {
    if (source.visible && source.is_table && world_.row_ids)
      return fmt::format("{}.rowid", source.alias);
  }
  return Number(scope);
}

std::string QueryParts::Order(const Scope& scope) {
  std::string order;
  for (const Source& source : scope) {
    if (!source.visible) continue;
    order += fmt::format("{}{}.id", order.empty() ? "" : ", ", source.alias);
  }
  return order;
}

/// An argument of a call: a column, an expression of columns, or an inner call.
Twin QueryParts::Argument(const Scope& scope, std::size_t depth) {
  switch (dice_.Below(depth > 0 ? 14 : 11)) {
    case 0:
      return Same(
          fmt::format(fmt::runtime(dice_.OneIn(2) ? "upper({})" : "{}.upper()"), Text(scope)));
    case 1:
      return Same(fmt::format("{} || {}", Text(scope), Text(scope)));
    case 2:
      return Same(dice_.OneIn(3) ? RowId(scope) : Number(scope));
    case 3:
      return dice_.OneIn(3) ? Same(dice_.OneIn(3) ? "NULL" : "'red'") : Same(Text(scope));
    case 4:
      return NestedText(scope, depth);
    case 11:
      return Format("CASE WHEN {} THEN 'red' ELSE 'blue' END", Condition(scope, depth - 1));
    case 13:
      return Format("CAST({} AS VARCHAR)", Call(scope, depth - 1));
    case 12: {
      Scope inner;
      const Twin from = From(inner, 0, 1);
      return Format("(SELECT min({}) FROM {} WHERE {})", Same(Text(inner)), from,
                    Condition(Seen(inner, scope, dice_.OneIn(2)), depth - 1));
    }
    default:
      return Same(Text(scope));
  }
}

std::string QueryParts::Hint() {
  if (!dice_.OneIn(4)) return "";
  return fmt::format(", {{'selectivity': 0.{}}}", dice_.Below(10));
}

/// A prompt that is no PROMPT.
Twin QueryParts::Concatenation(const Scope& scope) {
  static const std::vector<Twin> kForms = {
      {"'good? ' || {0}", "'good? {{0}}', {0}"},
      {"CONCAT({0}, ' has ', {1})", "'{{0}} has {{1}}', {0}, {1}"},
      {"{0} || ' warm?'", "'{{0}} warm?', {0}"},
      {"('good? ', {0})", "'good? {{0}}', {0}"},
      {"{0}", "'{{0}}', {0}"},
      {"upper({0})", "'{{0}}', upper({0})"}};
  const Twin& form = dice_.Pick(kForms);
  const std::string one = Text(scope);
  const std::string other = Text(scope);
  return {fmt::format("AI_FILTER({}{})", fmt::format(fmt::runtime(form.ai), one, other), Hint()),
          fmt::format("ref_filter({})", fmt::format(fmt::runtime(form.plain), one, other))};
}

Twin QueryParts::Call(const Scope& scope, std::size_t depth) {
  if (dice_.OneIn(10)) return Concatenation(scope);
  const std::size_t width = dice_.OneIn(8) ? 3 : dice_.OneIn(2) ? 2 : 1;
  const std::string& pattern = dice_.Pick(Templates(width));
  Twin arguments;
  // One without a slot drops its argument, whose names must be right all the same.
  const bool dropped = pattern.find('{') == std::string::npos;
  std::string text = fmt::format("'{}'", pattern);
  for (std::size_t i = 0; i < width; ++i) {
    const Twin argument = Argument(scope, depth);
    arguments.ai += ", " + argument.ai;
    if (dropped) {
      text =
          fmt::format("CASE WHEN TRUE THEN {} ELSE CAST({} AS VARCHAR) END", text, argument.plain);
    } else {
      arguments.plain += fmt::format(", CAST({} AS VARCHAR)", argument.plain);
    }
  }
  const std::string prompt = fmt::format("PROMPT('{}'{})", pattern, arguments.ai);
  const std::string plain = text + arguments.plain;
  switch (dice_.Below(9)) {
    case 3:
      return {fmt::format("((AI_FILTER({}, return_error_details => TRUE)).error IS NULL)", prompt),
              fmt::format("(ref_failed({}) IS NOT TRUE)", plain)};
    case 0:
      return {fmt::format("(AI_PROB({}) > 0.6)", prompt),
              fmt::format("(ref_prob({}) > 0.6)", plain)};
    case 1:
      return {fmt::format("AI_FILTER({}, {{'threshold': 0.6}})", prompt),
              fmt::format("(ref_prob({}) > 0.6)", plain)};
    case 2:
      return {fmt::format("(AI_FILTER({}, TRUE)).value", prompt),
              fmt::format("ref_filter({})", plain)};
    default:
      return {fmt::format("AI_FILTER({}{})", prompt, Hint()), fmt::format("ref_filter({})", plain)};
  }
}

Twin QueryParts::PlainCondition(const Scope& scope) {
  switch (dice_.Below(8)) {
    case 0:
      return Same(fmt::format("({} IS NULL)", Text(scope)));
    case 5:
      return Same(fmt::format("({} < {})", RowId(scope), 1 + dice_.Below(6)));
    case 6:
      return Same(fmt::format("({}.upper().length() > {})", Text(scope), dice_.Below(6)));
    case 1:
      return Same(fmt::format("({} > {})", Number(scope), dice_.Below(3)));
    case 2:
      return Same(fmt::format("({} = {})", Number(scope), Number(scope)));
    case 3:
      return Same(fmt::format("({} <> {})", Text(scope), Text(scope)));
    case 4:
      return Same(dice_.OneIn(2) ? "TRUE" : "CAST(NULL AS BOOLEAN)");
    default:
      return Same(fmt::format("({} < {})", Column(scope, "id"), 1 + dice_.Below(6)));
  }
}

// --- conditions ---

/// Conditions as values of an expression.
Twin QueryParts::Compared(const Scope& scope, std::size_t depth) {
  const auto part = [&] { return Condition(scope, depth); };
  switch (dice_.Below(9)) {
    case 0:
      return Format("({} IS DISTINCT FROM {})", part(), part());
    case 1:
      return Format("({} IN ({}, {}))", part(), part(), part());
    case 2:
      return Format("CASE {} WHEN {} THEN {} WHEN NULL THEN TRUE ELSE {} END", part(), part(),
                    part(), part());
    case 3:
      return Format("({} NOT IN ({}, FALSE))", part(), part());
    case 4:
      return Format("(CAST({} AS INTEGER) BETWEEN 1 AND {})", part(), Same(Number(scope)));
    case 5:
      return Format("IF({}, {}, {})", part(), part(), part());
    case 6:
      return Format("NULLIF({}, {})", part(), part());
    case 7:
      return Format("list_contains([{}, {}], TRUE)", part(), part());
    default:
      return Format("({} = {})", part(), part());
  }
}

Twin QueryParts::Condition(const Scope& scope, std::size_t depth) {
  if (depth == 0) return dice_.OneIn(3) ? PlainCondition(scope) : Call(scope, 0);
  const std::size_t next = depth - 1;
  switch (dice_.Below(18)) {
    case 0:
      return PlainCondition(scope);
    case 1:
    case 2:
      return Format("({} AND {})", Condition(scope, next), Condition(scope, next));
    case 3:
    case 4:
      return Format("({} OR {})", Condition(scope, next), Condition(scope, next));
    case 5:
      return Format("(NOT {})", Condition(scope, next));
    case 6:
      return Format("CASE WHEN {} THEN {} ELSE {} END", Condition(scope, next),
                    Condition(scope, next), Condition(scope, next));
    case 7:
      return Format(dice_.OneIn(2) ? "({} IS NULL)" : "({} IS NOT TRUE)", Condition(scope, next));
    case 8:
      return Format("COALESCE({}, {})", Condition(scope, next), Condition(scope, next));
    case 9:
      return Compared(scope, next);
    case 10:
      return InSubquery(scope, next);
    case 11:
      return Exists(scope, next);
    case 12:
      return Quantified(scope, next);
    case 13:
      return ScalarCondition(scope, next);
    case 14:
      return RowComparison(scope, next);
    default:
      return Call(scope, next);
  }
}

/// About one group, of which it reads an aggregate.
Twin QueryParts::ExistsOfGroup(const std::string& group) {
  const std::string inner = NewAlias();
  return Format("{}EXISTS (SELECT 1 FROM {} AS {} WHERE {} AND {}.n >= max({}.n))",
                Same(dice_.OneIn(2) ? "" : "NOT "), Same(dice_.Pick(world_.tables)), Same(inner),
                Condition({{inner}}, 1), Same(inner), Same(group));
}

Twin QueryParts::GroupCondition(const Scope& scope) {
  const std::string& alias = scope.front().alias;
  switch (dice_.Below(6)) {
    case 5:
      return ExistsOfGroup(alias);
    case 0:
      return {fmt::format("(AI_FILTER(PROMPT('{{0}} warm?', min({}.y))) IS NOT FALSE)", alias),
              fmt::format("(ref_filter('{{0}} warm?', min({}.y)) IS NOT FALSE)", alias)};
    case 1:
      return {fmt::format("(count(*) > 1 OR AI_FILTER(PROMPT('good? {{0}}', max({}.x))))", alias),
              fmt::format("(count(*) > 1 OR ref_filter('good? {{0}}', max({}.x)))", alias)};
    case 2:
      return Format("bool_or({})", Condition(scope, 1));
    case 3:
      return Format("(count(*) FILTER (WHERE {}) < 2)", Condition(scope, 1));
    default:
      return Format("(NOT bool_and({}) OR count(DISTINCT {}) = 2)", Condition(scope, 0),
                    Condition(scope, 0));
  }
}

Twin QueryParts::Limit() {
  Twin limit;
  static const std::vector<std::string> kLimits = {
      " LIMIT 1 + 1", " LIMIT 50%", " LIMIT (SELECT count(*) FROM t0 WHERE {})", " LIMIT 20 %"};
  if (dice_.OneIn(8)) return Format(dice_.Pick(kLimits), Call({{"t0"}}, 0));
  if (dice_.OneIn(2)) limit = Format(" LIMIT {}", Same(dice_.Below(5)));
  if (dice_.OneIn(4)) limit = Format("{} OFFSET {}", limit, Same(dice_.Below(3)));
  return limit;
}

// --- conditions with a query in them ---

Scope QueryParts::Seen(const Scope& inner, const Scope& outer, bool correlated) {
  Scope both = inner;
  if (correlated) both.insert(both.end(), outer.begin(), outer.end());
  return both;
}

Twin QueryParts::Exists(const Scope& scope, std::size_t depth) {
  if (dice_.OneIn(5)) return GroupExists(scope, depth);
  if (dice_.OneIn(6)) return ExistsOfWith(scope, depth);
  const bool correlated = !dice_.OneIn(3);
  Scope inner;
  const Twin from = From(inner, depth, 1 + dice_.Below(2));
  return Format(dice_.OneIn(2) ? "EXISTS (SELECT 1 FROM {} WHERE {})"
                               : "NOT EXISTS (SELECT 1 FROM {} WHERE {})",
                from, Condition(Seen(inner, scope, correlated), depth));
}

/// Over a WITH that reads the query around it.
Twin QueryParts::ExistsOfWith(const Scope& scope, std::size_t depth) {
  const std::string name = NewAlias();
  const std::string row = NewAlias();
  const std::string alias = NewAlias();
  const Twin where = Condition(Seen({{alias}}, scope, dice_.OneIn(2)), depth);
  return Format(
      "EXISTS (WITH {0} AS (SELECT * FROM {1} AS {2} WHERE {2}.k = {3}) SELECT 1 FROM "
      "{0} AS {4} WHERE {5})",
      Same(name), Same(dice_.Pick(world_.tables)), Same(row), Same(Number(scope)), Same(alias),
      where);
}

Twin QueryParts::GroupExists(const Scope& scope, std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1);
  const Twin where = Condition(Seen(inner, scope, dice_.OneIn(2)), depth);
  return Format("EXISTS (SELECT {} FROM {} WHERE {} GROUP BY 1 HAVING {})", Same(Number(inner)),
                from, where, GroupCondition(inner));
}

Twin QueryParts::Quantified(const Scope& scope, std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1);
  return Format(dice_.OneIn(2) ? "({} > ANY (SELECT {} FROM {} WHERE {}))"
                               : "({} <= ALL (SELECT {} FROM {} WHERE {}))",
                Same(Number(scope)), Same(Number(inner)), from,
                Condition(Seen(inner, scope, dice_.OneIn(2)), depth));
}

Twin QueryParts::InSubquery(const Scope& scope, std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1);
  const Twin condition = Condition(Seen(inner, scope, dice_.OneIn(2)), depth);
  const char* pattern = dice_.OneIn(2) ? "({} IN (SELECT {} FROM {} WHERE {}))"
                                       : "({} NOT IN (SELECT {} FROM {} WHERE {}))";
  switch (dice_.Below(4)) {
    case 0:
      return Format(pattern, Condition(scope, 0), Condition(inner, 0), from, condition);
    case 1:
      return Format(pattern, Same(Text(scope)), Same(Text(inner)), from, condition);
    default:
      return Format(pattern, Same(Number(scope)), Same(Number(inner)), from, condition);
  }
}

/// A query of one value that is a BOOLEAN.
Twin QueryParts::ScalarCondition(const Scope& scope, std::size_t depth) {
  Scope inner;
  const Twin from = From(inner, depth, 1);
  const Twin where = Condition(Seen(inner, scope, dice_.OneIn(2)), depth);
  if (dice_.OneIn(2)) {
    return Format("(SELECT bool_and({}) FROM {} WHERE {})", Condition(inner, depth), from, where);
  }
  return Format("(SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT 1)", Condition(inner, depth), from,
                where, Same(Order(inner)));
}

Twin QueryParts::SelectItem(const Scope& scope, std::size_t depth) {
  switch (dice_.Below(12)) {
    case 0:
      return Condition(scope, depth);
    case 1:
      return Format("CASE WHEN {} THEN {} ELSE {} END", Condition(scope, depth), Same(Text(scope)),
                    Same(Text(scope)));
    case 2:
      return Format("(SELECT count(*) FROM t0 WHERE t0.k = {} AND {})", Same(Number(scope)),
                    Call({{"t0"}}, 0));
    case 3:
      return Format("count(*) OVER (PARTITION BY {})", Condition(scope, depth > 0 ? 1 : 0));
    case 4: {
      Scope inner;
      const Twin from = From(inner, 0, 1);
      return Format("(SELECT min({}) FROM {} WHERE {})", Same(Text(inner)), from,
                    Condition(Seen(inner, scope, true), 1));
    }
    case 5:
      return Format("rank() OVER (ORDER BY {} NULLS LAST)", Condition(scope, depth));
    case 6:
      return Format("count(*) FILTER (WHERE {}) OVER (PARTITION BY {} ORDER BY {})",
                    Condition(scope, 1), Condition(scope, 0), Same(Order(scope)));
    case 7:
      return Format("lag({}) OVER (ORDER BY {}, {})", Condition(scope, 0), Condition(scope, 0),
                    Same(Order(scope)));
    case 8: {
      const std::string text = Text(scope);
      return {fmt::format("CAST(round(100 * AI_PROB(PROMPT('good? {{0}}', {}))) AS INTEGER)", text),
              fmt::format("CAST(round(100 * ref_prob('good? {{0}}', {})) AS INTEGER)", text)};
    }
    default:
      return Same(dice_.OneIn(2) ? Text(scope) : Number(scope));
  }
}

}  // namespace quail::test
