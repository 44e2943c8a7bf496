#include "query_statements.h"

namespace quail::test {
namespace {

/// A change of table w, and what is in it behind it.
class Changed {
 public:
  explicit Changed(QueryParts& parts) : dice_(parts.dice()), parts_(parts) {}

  RandomQuery Statement() {
    RandomQuery query;
    query.sql = Same("SELECT * FROM w");
    if (dice_.OneIn(4)) {
      query.before.push_back(Format("CREATE OR REPLACE TABLE w AS {}", parts_.AnyRows(1)));
      return query;
    }
    if (dice_.OneIn(3)) return WithKey(std::move(query));
    query.before.push_back(
        Same("CREATE OR REPLACE TABLE w AS SELECT * FROM " + dice_.Pick(parts_.world().tables)));
    query.before.push_back(Change());
    if (!dice_.OneIn(4)) return query;
    query.before.pop_back();
    query.sql = Format("INSERT INTO w {} RETURNING {}", parts_.AnyRows(1), Returned());
    return query;
  }

 private:
  Twin Condition(const Scope& scope, std::size_t depth) { return parts_.Condition(scope, depth); }

  Twin Returned() { return dice_.OneIn(2) ? Same("*") : Same("id, upper(x) AS u, k + n"); }

  Twin Change() {
    const Scope target = {{"w"}};
    const std::string alias = parts_.NewAlias();
    const Scope both = {{"w"}, {alias}};
    const Twin other = Same(fmt::format("{} AS {}", dice_.Pick(parts_.world().tables), alias));
    switch (dice_.Below(8)) {
      case 0:
        return Format("INSERT INTO w {}", parts_.AnyRows(1));
      case 1:
        return Format("DELETE FROM w WHERE {}", Condition(target, 2));
      case 2:
        return Format("DELETE FROM w USING {} WHERE {}", other, Condition(both, 1));
      case 3:
        return Format("UPDATE w SET x = 'new' FROM {} WHERE {}", other, Condition(both, 1));
      case 4:
        return Format("UPDATE w SET y = CASE WHEN {} THEN y ELSE x END, n = CAST({} AS INTEGER)",
                      Condition(target, 1), Condition(target, 1));
      case 5:
        return Format(
            "INSERT INTO w BY NAME SELECT x AS y, id, CAST({} AS VARCHAR) AS x FROM t0 AS {}",
            Condition({{alias}}, 1), Same(alias));
      case 6:
        return Format("INSERT INTO w (x, id) SELECT CAST({} AS VARCHAR), id FROM t0 AS {} WHERE {}",
                      Condition({{alias}}, 0), Same(alias), Condition({{alias}}, 1));
      default:
        return Format("UPDATE w SET k = n + 1, x = CAST({} AS VARCHAR) WHERE {}",
                      Condition(target, 0), Condition(target, 1));
    }
  }

  /// Into a table with a key, of which rows may be there.
  RandomQuery WithKey(RandomQuery query) {
    static const std::vector<std::string> kInserts = {
        "INSERT INTO w {}{}",
        "INSERT OR IGNORE INTO w {}{}",
        "INSERT OR REPLACE INTO w {}{}",
        "INSERT INTO w {} ON CONFLICT DO NOTHING{}",
        "INSERT INTO w {} ON CONFLICT (id) DO UPDATE SET x = excluded.y, k = excluded.k{}",
        "INSERT INTO w {} ON CONFLICT (id) DO UPDATE SET n = w.n + 1 WHERE excluded.k > 0{}"};
    query.before.push_back(
        Same("CREATE OR REPLACE TABLE w (id INTEGER PRIMARY KEY, k INTEGER, n INTEGER, x VARCHAR, "
             "y VARCHAR)"));
    query.before.push_back(Same(fmt::format("INSERT INTO w SELECT * FROM {} WHERE id < {}",
                                            dice_.Pick(parts_.world().tables), dice_.Below(5))));
    const bool returned = dice_.OneIn(3);
    const Twin returning = returned ? Format(" RETURNING {}", Returned()) : Twin{};
    const Twin insert = Format(dice_.Pick(kInserts), parts_.AnyRows(1), returning);
    if (returned) {
      query.sql = insert;
    } else {
      query.before.push_back(insert);
    }
    return query;
  }

  Dice& dice_;
  QueryParts& parts_;
};

}  // namespace

RandomQuery ChangedTable(QueryParts& parts) { return Changed(parts).Statement(); }

}  // namespace quail::test
