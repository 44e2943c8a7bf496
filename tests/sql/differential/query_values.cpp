#include "query_parts.h"

namespace quail::test {

/// Lists and structs, of which calls read a part.
Twin QueryParts::NestedText(const Scope& scope, std::size_t depth) {
  static const std::vector<std::string> kPlain = {
      "{{'a': {0}, 'b': {1}}}.b",
      "struct_extract({{'a': {0}, 'b': {1}}}, 'a')",
      "[{0}, {1}][2]",
      "list_transform([{0}, {1}], lambda z: upper(z))[1]",
      "list_filter([{0}, {1}], lambda z: z <> {0})[1]",
      "array_to_string([z || {0} FOR z IN [{1}, 'e'] IF z IS NOT NULL], ' ')",
      "list_reduce(['r', {0}, {1}], lambda a, b: concat(a, ' ', b))",
      "MAP {{'a': {0}}}['a']",
      "CAST([{0}, {1}] AS VARCHAR)",
      "CAST({{'a': {0}}} AS VARCHAR)",
      "list_sort([{0}, {1}], 'DESC')[1]"};
  static const std::vector<std::string> kDecided = {
      "list_filter([{0}, {1}], lambda z: {2})[1]",
      "CAST(list_transform([{0}, {1}], lambda z: CASE WHEN {2} THEN upper(z) ELSE {0} END) AS "
      "VARCHAR)",
      "array_to_string([z FOR z IN [{0}, {1}, 'e'] IF {2}], ' ')",
      "CAST({{'a': {2}, 'b': {0}}}.a AS VARCHAR)",
      "(CASE WHEN {2} THEN {{'a': {0}}} ELSE {{'a': {1}}} END).a"};
  const Twin one = Same(Text(scope));
  const Twin other = Same(Text(scope));
  if (depth == 0 || dice_.OneIn(2)) return Format(dice_.Pick(kPlain), one, other);
  return Format(dice_.Pick(kDecided), one, other, Condition(scope, depth - 1));
}

/// Two values at once on each side.
Twin QueryParts::RowComparison(const Scope& scope, std::size_t depth) {
  static const std::vector<std::string> kPatterns = {
      "(({0}, {1}) IN (SELECT {2}, {3} FROM {4} WHERE {5}))",
      "(({0}, {1}) NOT IN (SELECT {2}, {3} FROM {4} WHERE {5}))",
      "(({0}, {1}) = ANY (SELECT {2}, {3} FROM {4} WHERE {5}))",
      "(({0}, {1}) IN (SELECT ({2}, {3}) FROM {4} WHERE {5}))",
      "(({0}, {1}) = (SELECT ({2}, {3}) FROM {4} WHERE {5} ORDER BY {6} LIMIT 1))",
      "(({0}, {1}) IN ((1, TRUE), (0, FALSE), ({0}, TRUE)))",
      "(({0}, {1}) < (1, TRUE))",
      "(({0}, {1}) IS NOT DISTINCT FROM (1, TRUE))"};
  Scope inner;
  const Twin from = From(inner, depth, 1);
  return Format(dice_.Pick(kPatterns), Same(Number(scope)), Condition(scope, depth),
                Same(Number(inner)), Condition(inner, 0), from,
                Condition(Seen(inner, scope, dice_.OneIn(2)), depth), Same(Order(inner)));
}

/// A row of each element of lists.
Twin QueryParts::UnnestedRows(std::size_t depth) {
  const std::string table = NewAlias();
  const std::string element = NewAlias();
  const Twin list = dice_.OneIn(2) ? Format("CASE WHEN {0} THEN [{1}.x, {1}.y] ELSE [{1}.y] END",
                                            Condition({{table, true}}, depth), Same(table))
                                   : Same(fmt::format("[{0}.x, {0}.y]", table));
  static const std::vector<std::string> kPatterns = {
      "SELECT {1}.id AS id, {1}.k AS k, {1}.n AS n, {1}.x AS x, list_first({1}.l) AS y FROM "
      "(SELECT *, {3} AS l FROM {0} AS {1}) AS {1} WHERE {4}",
      "SELECT min({2}.id) AS id, {2}.k AS k, max({2}.n) AS n, {2}.v AS x, min({2}.y) AS y FROM "
      "(SELECT {1}.*, unnest({3}) AS v FROM {0} AS {1}) AS {2} WHERE {5} GROUP BY {2}.k, {2}.v",
      "SELECT {1}.id * 2 + {2}.i AS id, {1}.k AS k, {1}.n AS n, {2}.v AS x, {1}.y AS y FROM {0} AS "
      "{1}, (SELECT unnest({3}) AS v, unnest([0, 1]) AS i) AS {2} WHERE {4}",
      "SELECT min({1}.id) AS id, max({1}.k) AS k, max({1}.n) AS n, {2}.v AS x, min({1}.y) AS y "
      "FROM {0} AS {1}, unnest({3}) AS {2}(v) WHERE {4} GROUP BY {2}.v"};
  const Twin where = Condition({{table}}, depth);
  const Twin element_call = {fmt::format("AI_FILTER(PROMPT('good? {{0}}', {}.v))", element),
                             fmt::format("ref_filter('good? {{0}}', {}.v)", element)};
  const Twin either = dice_.OneIn(2) ? Format("({} OR {})", where, element_call)
                                     : Format("({} AND {})", element_call, where);
  const std::size_t pattern = dice_.Below(kPatterns.size());
  return Format(kPatterns[pattern], Same(dice_.Pick(world_.tables)), Same(table), Same(element),
                list, pattern == 0 ? where : either, element_call);
}

/// Rows that are written down, of which calls make a part.
Twin QueryParts::ValueRows() {
  const auto call = [&] {
    static const std::vector<std::string> kWords = {"red", "blue", "NULL", ""};
    const std::string& word = dice_.Pick(kWords);
    return Twin{fmt::format("AI_FILTER(PROMPT('good? {{0}}', '{}'))", word),
                fmt::format("ref_filter('good? {{0}}', '{}')", word)};
  };
  return Format(
      "SELECT {0}.id AS id, {0}.k AS k, {0}.n AS n, {0}.x AS x, {0}.y AS y FROM (VALUES (1, 0, "
      "CAST({1} AS INTEGER), 'red', NULL), (2, CAST({2} AS INTEGER), 2, 'blue', CAST({3} AS "
      "VARCHAR))) AS {0}(id, k, n, x, y)",
      Same(NewAlias()), call(), call(), call());
}

}  // namespace quail::test
