#include "query_statements.h"

namespace quail::test {
namespace {

/// One block with windows.
class Windows {
 public:
  explicit Windows(QueryParts& parts) : dice_(parts.dice()), parts_(parts) {}

  RandomQuery Query() {
    const Twin from = parts_.From(scope_, 1, 1 + dice_.Below(2));
    Twin list = Same(parts_.Column(scope_, "id"));
    named_ = dice_.OneIn(2);
    for (std::size_t i = 1 + dice_.Below(2); i > 0; --i) list = Format("{}, {}", list, Value());
    RandomQuery query;
    query.sql = Format("SELECT {} FROM {}", list, from);
    if (!dice_.OneIn(4)) query.sql = Format("{} WHERE {}", query.sql, Condition(1));
    if (named_) query.sql = Format("{} WINDOW w AS ({}{})", query.sql, Partition(), Order());
    if (dice_.OneIn(4)) {
      query.sql = Format("{} QUALIFY count(*) FILTER (WHERE {}) OVER ({}{}) {}", query.sql,
                         Condition(0), Partition(), Order(), Same(dice_.OneIn(2) ? "= 1" : "> 1"));
    }
    if (dice_.OneIn(3)) {
      query.ordered = true;
      query.sql = Format("{} ORDER BY {}{}", query.sql, Same(parts_.Order(scope_)), parts_.Limit());
    }
    return query;
  }

 private:
  Twin Condition(std::size_t depth) { return parts_.Condition(scope_, depth); }

  Twin Partition() {
    if (dice_.OneIn(2)) return {};
    return Format("PARTITION BY {} ", dice_.OneIn(2) ? Condition(0) : Same(parts_.Number(scope_)));
  }

  /// A total one.
  Twin Order() {
    const Twin ids = Same(parts_.Order(scope_));
    return dice_.OneIn(2) ? Format("ORDER BY {} ", ids)
                          : Format("ORDER BY {}, {} ", Condition(0), ids);
  }

  Twin Bound() {
    switch (dice_.Below(3)) {
      case 0:
        return Format("CASE WHEN {} THEN 1 ELSE 2 END", Condition(0));
      case 1:
        return Same(fmt::format("coalesce({}, 0)", parts_.Number(scope_)));
      default:
        return Same(dice_.Below(3));
    }
  }

  Twin Frame(const char* unit) {
    static const std::vector<std::string> kExcluded = {
        "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"};
    static const std::vector<std::string> kFrames = {
        "{} BETWEEN UNBOUNDED PRECEDING AND {} FOLLOWING{}",
        "{} BETWEEN {} PRECEDING AND CURRENT ROW{}",
        "{0} BETWEEN {1} PRECEDING AND {1} FOLLOWING{2}",
        "{} BETWEEN {} FOLLOWING AND UNBOUNDED FOLLOWING{}"};
    return Format(dice_.Pick(kFrames), Same(unit), Bound(), Same(dice_.Pick(kExcluded)));
  }

  /// Of a named window, or one of its own.
  Twin Window() {
    if (named_ && dice_.OneIn(2)) {
      return dice_.OneIn(2) ? Same("w") : Format("(w {})", Frame("ROWS"));
    }
    return Format("({}{}{})", Partition(), Order(),
                  dice_.OneIn(2) ? Twin{} : Frame(dice_.OneIn(2) ? "ROWS" : "GROUPS"));
  }

  /// Peers have one value, in whatever order they come.
  Twin ByPeers() {
    const Twin key = dice_.OneIn(2) ? Format("CASE WHEN {} THEN 1 ELSE 0 END", Condition(0))
                                    : Same(parts_.Number(scope_));
    return Format("{} OVER ({}ORDER BY {} {})", Counted(), Partition(), key,
                  Frame(dice_.OneIn(2) ? "RANGE" : "GROUPS"));
  }

  /// An aggregate that is the same in every order.
  Twin Counted() {
    switch (dice_.Below(5)) {
      case 0:
        return Format("count(*) FILTER (WHERE {})", Condition(1));
      case 1:
        return Format("count(CASE WHEN {} THEN 1 END)", Condition(0));
      case 2:
        return Format("max({}) FILTER (WHERE {})", Same(parts_.Text(scope_)), Condition(0));
      case 3:
        return Format("count(DISTINCT {})", Condition(0));
      default:
        return Format("sum(CAST({} AS INTEGER))", Condition(0));
    }
  }

  Twin Placed() {
    static const std::vector<std::string> kFunctions = {"first_value({}{})", "last_value({}{})",
                                                        "nth_value({}, 2{})", "lag({}, 1{})",
                                                        "lead({}, 1, NULL{})"};
    const Twin value = dice_.OneIn(2) ? Condition(0) : Same(parts_.Text(scope_));
    return Format(dice_.Pick(kFunctions), value, Same(dice_.OneIn(2) ? "" : " IGNORE NULLS"));
  }

  Twin Value() {
    switch (dice_.Below(5)) {
      case 0:
        return ByPeers();
      case 1:
        return Format("{} OVER {}", Counted(), Window());
      case 2:
        return Format("{} OVER {}", Same(dice_.OneIn(2) ? "ntile(2)" : "dense_rank()"), Window());
      case 3: {
        const Twin placed = Placed();
        return Format("CASE WHEN {} THEN {} OVER {} END", Condition(0), placed, Window());
      }
      default:
        return Format("{} OVER {}", Placed(), Window());
    }
  }

  Dice& dice_;
  QueryParts& parts_;
  Scope scope_;
  bool named_ = false;
};

/// Windows over the aggregates of groups.
RandomQuery WindowOverGroups(QueryParts& parts) {
  Scope scope;
  const Twin from = parts.From(scope, 1, 1);
  const auto condition = [&](std::size_t depth) { return parts.Condition(scope, depth); };
  RandomQuery query;
  query.sql = Format(
      "SELECT {} AS g, count(*) AS c, sum(count(*)) OVER (ORDER BY {}), rank() OVER (ORDER BY "
      "count(*) FILTER (WHERE {}), {}) FROM {} WHERE {} GROUP BY g",
      condition(0), parts.GroupCondition(scope), condition(0), parts.GroupCondition(scope), from,
      condition(1));
  if (parts.dice().OneIn(3)) {
    query.sql = Format("{} QUALIFY row_number() OVER (ORDER BY c DESC, g) = 1", query.sql);
  }
  return query;
}

}  // namespace

RandomQuery WindowQuery(QueryParts& parts) {
  return parts.dice().OneIn(4) ? WindowOverGroups(parts) : Windows(parts).Query();
}

}  // namespace quail::test
