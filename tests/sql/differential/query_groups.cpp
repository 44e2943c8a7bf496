#include "query_statements.h"

namespace quail::test {
namespace {

/// One block with groups.
class Grouped {
 public:
  explicit Grouped(QueryParts& parts) : dice_(parts.dice()), parts_(parts) {}

  RandomQuery Query() {
    const Twin from = parts_.From(scope_, 1, 1 + dice_.Below(2));
    const Twin where = Condition(1);
    switch (dice_.Below(6)) {
      case 0:
        return WithoutKeys(from, where);
      case 1:
      case 2:
        return WithSets(from, where);
      default:
        return WithKey(from, where);
    }
  }

 private:
  Twin Condition(std::size_t depth) { return parts_.Condition(scope_, depth); }
  Twin Key() { return dice_.OneIn(2) ? Condition(1) : Same(parts_.Number(scope_)); }

  Twin Aggregates() {
    Twin list = Format("count(*), sum(CASE WHEN {} THEN 1 ELSE 0 END), bool_or({})", Condition(1),
                       Condition(1));
    for (std::size_t i = dice_.Below(3); i > 0; --i) list = Format("{}, {}", list, Aggregate());
    return list;
  }

  Twin Aggregate() {
    const std::string& alias = scope_.front().alias;
    const Twin order = Same(parts_.Order(scope_));
    switch (dice_.Below(8)) {
      case 0:
        return Format("count(*) FILTER (WHERE {})", Condition(1));
      case 1:
        return Format("max(CASE WHEN {} THEN {} END)", Condition(1), Same(parts_.Text(scope_)));
      case 2:
        return Format("string_agg({}, ',' ORDER BY {}, {})", Same(parts_.Text(scope_)),
                      Condition(0), order);
      case 3:
        return Format("string_agg(CAST({} AS VARCHAR), ',' ORDER BY {})", Condition(1), order);
      case 4:
        return Format("count(DISTINCT {})", Condition(0));
      case 5:
        return Format("arg_min({}, {}.id)", Condition(0), Same(alias));
      case 6:
        return Format("CAST(list({} ORDER BY {} DESC) AS VARCHAR)", Condition(0), order);
      default:
        return {fmt::format("AI_FILTER(PROMPT('good? {{0}}', max({}.x)))", alias),
                fmt::format("ref_filter('good? {{0}}', max({}.x))", alias)};
    }
  }

  /// One group of all rows, or none where HAVING says so.
  RandomQuery WithoutKeys(const Twin& from, const Twin& where) {
    RandomQuery query;
    query.sql = Format("SELECT {} FROM {} WHERE {}", Aggregates(), from, where);
    if (dice_.OneIn(2)) query.sql = Format("{} HAVING {}", query.sql, Having());
    return query;
  }

  Twin Having() { return parts_.GroupCondition(scope_); }

  /// Keys that each set has or lacks.
  RandomQuery WithSets(const Twin& from, const Twin& where) {
    static const std::vector<std::string> kSets = {"GROUPING SETS ((g), (h), (g, h), ())",
                                                   "GROUPING SETS ((g), (g), (h))",
                                                   "ROLLUP (g, h)",
                                                   "CUBE (g, h)",
                                                   "g, ROLLUP (h)",
                                                   "GROUPING SETS (ROLLUP (g, h), (h))"};
    RandomQuery query;
    query.sql = Format("SELECT {} AS g, {} AS h, {}, {} FROM {} WHERE {} GROUP BY {}", Key(), Key(),
                       Same(dice_.OneIn(2) ? "grouping(g, h)" : "grouping_id(h)"), Aggregates(),
                       from, where, Same(dice_.Pick(kSets)));
    if (dice_.OneIn(4)) query.sql = Format("{} HAVING {}", query.sql, Having());
    return query;
  }

  RandomQuery WithKey(const Twin& from, const Twin& where) {
    static const std::vector<std::string> kGroups = {"1", "g", "ALL", "ROLLUP (1)", "CUBE (1)"};
    const std::string& groups = dice_.Pick(kGroups);
    RandomQuery query;
    query.sql = Format("SELECT {} AS g, {} FROM {} WHERE {} GROUP BY {}", Key(), Aggregates(), from,
                       where, Same(groups));
    if (dice_.OneIn(3)) query.sql = Format("{} HAVING {}", query.sql, Having());
    if (groups.size() == 1 && dice_.OneIn(3)) {
      query.ordered = true;
      query.sql = Format("{} ORDER BY 1{}", query.sql, parts_.Limit());
    }
    return query;
  }

  Dice& dice_;
  QueryParts& parts_;
  Scope scope_;
};

}  // namespace

RandomQuery GroupedQuery(QueryParts& parts) { return Grouped(parts).Query(); }

}  // namespace quail::test
