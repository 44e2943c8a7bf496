#include "query_generator.h"

#include <fmt/format.h>

#include <utility>

#include "query_parts.h"
#include "query_statements.h"

namespace quail::test {
namespace {

/// Whole statements out of random parts.
class Generator {
 public:
  Generator(const World& world, Dice& dice) : dice_(dice), parts_(world, dice) {}

  RowQuery OverRows() {
    const std::string alias = parts_.NewAlias();
    const Scope scope = {{alias}};
    RowQuery query;
    query.table = dice_.Pick(parts_.world().tables);
    query.before = fmt::format("SELECT {0}.id, {1}, CASE WHEN {2} THEN {0}.x END FROM ", alias,
                               parts_.Condition(scope, 1).ai, parts_.Condition(scope, 1).ai);
    query.after = fmt::format(" AS {} WHERE {}", alias, parts_.Condition(scope, 2).ai);
    return query;
  }

  RandomQuery Statement() {
    switch (dice_.Below(28)) {
      case 0:
      case 1:
        return SetOperation();
      case 2:
      case 3:
        return WithCte();
      case 4:
        return WithRecursion();
      case 5:
      case 6:
        return GroupedQuery(parts_);
      case 7:
        return OverView();
      case 8:
        return ChangedTable(parts_);
      case 9:
        return CountOfLimited();
      case 10:
        return Aliased();
      case 11:
      case 12:
        return WindowQuery(parts_);
      case 13:
      case 14:
        return StarQuery(parts_);
      case 15:
        return PreparedQuery(parts_);
      case 16:
        return MacroQuery(parts_);
      case 17:
        return TwiceViewed(parts_);
      default:
        return Plain();
    }
  }

 private:
  Twin Condition(const Scope& scope, std::size_t depth) { return parts_.Condition(scope, depth); }

  std::size_t Tables() {
    if (dice_.OneIn(2)) return 1;
    return dice_.OneIn(5) ? 4 : 1 + dice_.Below(3);
  }

  /// The select list, FROM and WHERE of a block.
  Twin Block(Scope& scope, const char* select) {
    const Twin from = parts_.From(scope, 1, Tables());
    Twin list = Same(parts_.Column(scope, "id"));
    for (std::size_t i = dice_.Below(3); i > 0; --i) {
      const Twin item = parts_.SelectItem(scope, dice_.Below(2));
      const std::string name = dice_.OneIn(4) ? " AS " + ItemName() : "";
      list = Format("{}, {}{}", list, item, Same(name));
    }
    const bool named = dice_.OneIn(8);
    if (named) list = Format("{}, {} AS p", list, Condition(scope, 1));
    Twin block = Format("SELECT{} {} FROM {}", Same(select), list, from);
    if (dice_.OneIn(5)) return block;
    return Format(named && dice_.OneIn(2) ? "{} WHERE (p OR {})" : "{} WHERE {}", block,
                  Condition(scope, 2));
  }

  /// One that a column has too, or a second item.
  std::string ItemName() {
    static const std::vector<std::string> kNames = {"id", "k", "n", "x", "y", "p"};
    return dice_.Pick(kNames);
  }

  /// An order that begins with a call or a name and is total.
  Twin Order(const Scope& scope) {
    static const std::vector<std::string> kWays = {"", " DESC", " NULLS FIRST", " DESC NULLS LAST"};
    const Twin ids = Same(parts_.Order(scope));
    if (dice_.OneIn(2)) return ids;
    const Twin first = dice_.OneIn(4) ? Same(ItemName()) : Condition(scope, 1);
    return Format("{}{}, {}", first, Same(dice_.Pick(kWays)), ids);
  }

  RandomQuery Plain() {
    Scope scope;
    RandomQuery query;
    if (dice_.OneIn(10)) {
      query.sql = Block(scope, " DISTINCT");
      return query;
    }
    if (dice_.OneIn(12)) return DistinctOn();
    query.sql = Block(scope, "");
    if (dice_.OneIn(8)) query.sql = Format("{} QUALIFY {}", query.sql, Qualification(scope));
    if (dice_.OneIn(3)) {
      query.ordered = true;
      query.sql = Format("{} ORDER BY {}{}", query.sql, Order(scope), parts_.Limit());
    }
    return query;
  }

  /// The first row of each value.
  RandomQuery DistinctOn() {
    Scope scope;
    RandomQuery query;
    const Twin from = parts_.From(scope, 1, 1 + dice_.Below(2));
    const Twin key = dice_.OneIn(3) ? Same(parts_.Number(scope)) : Condition(scope, 1);
    query.ordered = true;
    query.sql =
        Format("SELECT DISTINCT ON ({}) {}, {}, {} FROM {} WHERE {} ORDER BY {}, {}{}", key,
               Same(parts_.Column(scope, "id")), parts_.SelectItem(scope, 1), Condition(scope, 0),
               from, Condition(scope, 1), dice_.OneIn(2) ? key : Condition(scope, 0),
               Same(parts_.Order(scope)), parts_.Limit());
    return query;
  }

  Twin Qualification(const Scope& scope) {
    const Twin first = Format("row_number() OVER (PARTITION BY {} ORDER BY {}) = 1",
                              Condition(scope, 1), Same(parts_.Order(scope)));
    switch (dice_.Below(3)) {
      case 0:
        return Format("{} OR {}", first, Condition(scope, 1));
      case 1:
        return Format("{} AND rank() OVER (ORDER BY {}) < 3", Condition(scope, 1),
                      Condition(scope, 0));
      default:
        return first;
    }
  }

  /// Names of the select list where a query may use them: new ones, those of columns, one twice.
  RandomQuery Aliased() {
    static const std::vector<std::string> kNames = {"e", "f", "g", "x", "k"};
    Scope scope;
    RandomQuery query;
    const Twin from = parts_.From(scope, 1, 1 + dice_.Below(2));
    const std::string first = dice_.Pick(kNames);
    const std::string second = dice_.Pick(kNames);
    const auto call = [&] {
      const std::string& name = dice_.OneIn(2) ? first : second;
      return Twin{fmt::format("AI_FILTER(PROMPT('good? {{0}}', {}))", name),
                  fmt::format("ref_filter('good? {{0}}', CAST({} AS VARCHAR))", name)};
    };
    const Twin one = Format(dice_.OneIn(2) ? "upper({})" : "{}", Same(parts_.Text(scope)));
    const Twin two = Format(dice_.OneIn(2) ? "concat({1}, {0}, 'e')" : "{1}", Same(first),
                            Same(parts_.Text(scope)));
    query.sql =
        Format("SELECT {} AS i, {} AS {}, {} AS {}, {} AS p FROM {}",
               Same(parts_.Column(scope, "id")), one, Same(first), two, Same(second), call(), from);
    const Twin condition = dice_.OneIn(2)   ? call()
                           : dice_.OneIn(2) ? Same("p")
                                            : Condition(scope, 1);
    if (dice_.OneIn(2)) query.sql = Format("{} WHERE {}", query.sql, condition);
    if (dice_.OneIn(4)) return query;
    const Twin key = dice_.OneIn(3) ? call() : Same(dice_.OneIn(2) ? first : second);
    query.ordered = true;
    query.sql =
        Format("{} ORDER BY {}, {}{}", query.sql, key, Same(parts_.Order(scope)), parts_.Limit());
    return query;
  }

  RandomQuery CountOfLimited() {
    Scope scope;
    RandomQuery query;
    query.sql =
        Format("SELECT count(*) FROM ({} LIMIT {})", Block(scope, ""), Same(dice_.Below(5)));
    return query;
  }

  RandomQuery SetOperation() {
    static const std::vector<std::string> kOperations = {
        "UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"};
    const auto operation = [&] { return Same(dice_.Pick(kOperations)); };
    RandomQuery query;
    query.sql = Format("({}) {} ({})", parts_.Rows(1), operation(), parts_.Rows(1));
    if (dice_.OneIn(4)) {
      query.sql = Format("({}) {} ({})", query.sql, operation(), parts_.AnyRows(0));
    }
    if (dice_.OneIn(4)) {
      // Rows that are equal in all columns are equal as lines too.
      query.ordered = true;
      query.sql = Format("{} ORDER BY 1, 2, 3, 4, 5{}", query.sql, parts_.Limit());
    }
    return query;
  }

  RandomQuery WithCte() {
    static const std::vector<std::string> kKept = {"", "", "MATERIALIZED ", "NOT MATERIALIZED "};
    // Of a table's name, too: behind it that table is hidden, within and before it is not.
    const std::vector<std::string>& tables = parts_.world().tables;
    const std::string first = dice_.OneIn(3) ? dice_.Pick(tables) : "c";
    Twin with =
        Format("WITH {} AS {}({})", Same(first), Same(dice_.Pick(kKept)), parts_.AnyRows(1));
    parts_.AddTable(first);
    if (dice_.OneIn(3)) {
      const std::string table = dice_.Pick(tables);
      const std::string second = table != first && dice_.OneIn(3) ? table : "d";
      const Twin rows =
          dice_.OneIn(3)
              ? Same(fmt::format("SELECT id + 100 AS id, k, n, x, y FROM {}", dice_.Pick(tables)))
              : parts_.AnyRows(1);
      with = Format("{}, {} AS {}({})", with, Same(second), Same(dice_.Pick(kKept)), rows);
      parts_.AddTable(second);
    }
    RandomQuery query = dice_.OneIn(4)   ? SetOperation()
                        : dice_.OneIn(4) ? GroupedQuery(parts_)
                                         : Plain();
    query.sql = Format("{} {}", with, query.sql);
    return query;
  }

  /// UNION of finitely many values ends.
  RandomQuery WithRecursion() {
    const std::string step = parts_.NewAlias();
    const std::string row = parts_.NewAlias();
    const Scope scope = {{row}, {step}};
    const Twin first = parts_.Rows(0);
    const Twin more =
        Format("SELECT {0}.id, {0}.k, {0}.n, {0}.x, {0}.y FROM r AS {1}, {2} AS {0} WHERE {3}",
               Same(row), Same(step), Same(dice_.Pick(parts_.world().tables)), Condition(scope, 1));
    RandomQuery query;
    query.sql = Format("WITH RECURSIVE r AS (({}) UNION {}) SELECT * FROM r", first, more);
    return query;
  }

  RandomQuery OverView() {
    const Twin rows = parts_.AnyRows(1);
    parts_.AddTable("v");
    RandomQuery query = Plain();
    query.before.push_back(Format("CREATE OR REPLACE TEMP VIEW v AS {}", rows));
    return query;
  }

  Dice& dice_;
  QueryParts parts_;
};

}  // namespace

RandomQuery MakeQuery(const World& world, Dice& dice) { return Generator(world, dice).Statement(); }
RowQuery MakeRowQuery(const World& world, Dice& dice) { return Generator(world, dice).OverRows(); }

}  // namespace quail::test
