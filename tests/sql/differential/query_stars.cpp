#include "query_statements.h"

namespace quail::test {
namespace {

/// Select lists that name columns by a pattern, and other orders of clauses.
class Stars {
 public:
  explicit Stars(QueryParts& parts) : dice_(parts.dice()), parts_(parts) {}

  RandomQuery Query() {
    RandomQuery query;
    if (dice_.OneIn(4)) {
      query.sql = ByName();
      return query;
    }
    const Twin from = parts_.From(scope_, 1, 1 + dice_.Below(2));
    const Twin where = Condition(1);
    if (dice_.OneIn(6)) {
      query.sql = Format("SELECT {} FROM {} WHERE {}", OfColumns(), from, where);
      return query;
    }
    query.sql = Block(from, where);
    if (dice_.OneIn(3)) {
      query.ordered = true;
      query.sql = Format("{} ORDER BY {}{}", query.sql,
                         dice_.OneIn(2) ? Same("ALL") : Same(parts_.Order(scope_)), parts_.Limit());
    }
    return query;
  }

 private:
  Twin Condition(std::size_t depth) { return parts_.Condition(scope_, depth); }

  Twin Block(const Twin& from, const Twin& where) {
    switch (dice_.Below(6)) {
      case 0:
        return Format("FROM {} WHERE {}", from, where);
      case 1:
        return Format("FROM {} SELECT {} WHERE {}", from, List(), where);
      case 2:
        return Format("SELECT {} FROM (FROM {} WHERE {}) AS q", Same(Star("")), from, where);
      default:
        return Format("SELECT {} FROM {} WHERE {}", List(), from, where);
    }
  }

  Twin List() {
    const std::string& alias = dice_.Pick(scope_).alias;
    const bool visible = scope_.front().alias == alias || scope_.back().visible;
    const std::string of = visible && dice_.OneIn(2) ? alias + "." : "";
    const Twin star = dice_.OneIn(4) ? Replaced(of) : Same(Star(of));
    switch (dice_.Below(3)) {
      case 0:
        return star;
      case 1:
        return Format("{}, {} AS p", star, Condition(1));
      default:
        return Format("{} AS p, {}", Condition(1), star);
    }
  }

  std::string Star(const std::string& of) {
    static const std::vector<std::string> kStars = {"{}*",
                                                    "{}* EXCLUDE (k)",
                                                    "{}* EXCLUDE (x, y)",
                                                    "{}* REPLACE (upper(x) AS x)",
                                                    "{}* RENAME (k AS kk)",
                                                    "{}* EXCLUDE (n) RENAME (x AS xx)",
                                                    "{}* LIKE '%x%'",
                                                    "COLUMNS('^(id|x)')",
                                                    "COLUMNS(c -> c IN ('k', 'y'))",
                                                    "COLUMNS(* EXCLUDE (n))",
                                                    "upper(CAST(COLUMNS({}*) AS VARCHAR))"};
    return fmt::format(fmt::runtime(dice_.Pick(kStars)), of);
  }

  Twin Replaced(const std::string& of) {
    return Format("{}* REPLACE (CASE WHEN {} THEN 1 ELSE 0 END AS n)", Same(of), Condition(0));
  }

  /// An expression over each of some columns.
  Twin OfColumns() {
    static const std::vector<std::string> kLists = {
        "min(COLUMNS('x|y')), bool_or({})", "count(COLUMNS(*)) FILTER (WHERE {})",
        "max(CASE WHEN {} THEN COLUMNS('k|n') END)",
        "CASE WHEN {} THEN CAST(COLUMNS('k|x') AS VARCHAR) ELSE 'e' END"};
    return Format(dice_.Pick(kLists), Condition(1));
  }

  Twin ByName() {
    static const std::vector<std::string> kOperations = {"UNION", "UNION ALL"};
    const auto side = [&](const char* list) {
      Scope scope;
      const Twin from = parts_.From(scope, 1, 1);
      return Format(list, parts_.Condition(scope, 1), from, parts_.Condition(scope, 1),
                    Same(scope.front().alias));
    };
    const Twin left = side("SELECT {3}.id, {0} AS p, {3}.x FROM {1} WHERE {2}");
    const Twin right = side(dice_.OneIn(2) ? "SELECT {3}.x, {3}.id, {0} AS p FROM {1} WHERE {2}"
                                           : "SELECT {3}.k, {3}.id, {0} AS p FROM {1} WHERE {2}");
    const Twin united = Format("({}) {} BY NAME ({})", left, Same(dice_.Pick(kOperations)), right);
    return dice_.OneIn(2) ? united
                          : Format("SELECT p, count(*), min(x) FROM ({}) GROUP BY ALL", united);
  }

  Dice& dice_;
  QueryParts& parts_;
  Scope scope_;
};

}  // namespace

RandomQuery StarQuery(QueryParts& parts) { return Stars(parts).Query(); }

}  // namespace quail::test
