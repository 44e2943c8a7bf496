#include "query_generator.h"

#include <fmt/format.h>

#include <utility>

namespace quail::test {
namespace {

Twin Same(const std::string& sql) { return {sql, sql}; }

/// Both spellings through one format with `{}` for each part.
template <typename... Parts>
Twin Format(fmt::string_view pattern, const Parts&... parts) {
  return {fmt::format(fmt::runtime(pattern), parts.ai...),
          fmt::format(fmt::runtime(pattern), parts.plain...)};
}

/// A FROM item: its alias, and how its columns are called.
struct Source {
  std::string alias;
  bool visible = true;
};

using Scope = std::vector<Source>;

class Generator {
 public:
  Generator(const World& world, Dice& dice) : world_(world), dice_(dice) {}

  RowQuery OverRows() {
    const std::string alias = NewAlias();
    const Scope scope = {{alias}};
    RowQuery query;
    query.table = dice_.Pick(world_.tables);
    query.before = fmt::format("SELECT {0}.id, {1}, CASE WHEN {2} THEN {0}.x END FROM ", alias,
                               Condition(scope, 1).ai, Condition(scope, 1).ai);
    query.after = fmt::format(" AS {} WHERE {}", alias, Condition(scope, 2).ai);
    return query;
  }

  RandomQuery Statement() {
    RandomQuery query;
    const std::size_t shape = dice_.Below(12);
    if (shape == 0) return SetOperation();
    if (shape == 1) return WithCte();
    if (shape == 2) return Grouped({});
    return Plain({}, true);
  }

 private:
  // --- leaves ---

  std::string NewAlias() { return fmt::format("a{}", aliases_++); }

  std::string Column(const Scope& scope, const char* name) {
    std::vector<std::string> visible;
    for (const Source& source : scope) {
      if (source.visible) visible.push_back(source.alias);
    }
    return fmt::format("{}.{}", dice_.Pick(visible), name);
  }
  std::string Text(const Scope& scope) { return Column(scope, dice_.OneIn(2) ? "x" : "y"); }
  std::string Number(const Scope& scope) { return Column(scope, dice_.OneIn(2) ? "k" : "n"); }

  /// An argument of a call: a column, an expression of columns, or an inner call.
  Twin Argument(const Scope& scope, std::size_t depth) {
    switch (dice_.Below(depth > 0 ? 12 : 9)) {
      case 0:
        return Same(fmt::format("upper({})", Text(scope)));
      case 1:
        return Same(fmt::format("{} || {}", Text(scope), Text(scope)));
      case 2:
        return Same(Number(scope));
      case 9:
        return Format("CASE WHEN {} THEN 'red' ELSE 'blue' END", Condition(scope, depth - 1));
      case 10:
        return Format("CAST({} AS VARCHAR)", Call(scope, depth - 1));
      default:
        return Same(Text(scope));
    }
  }

  std::string Options() {
    if (!dice_.OneIn(4)) return "";
    return fmt::format(", {{'selectivity': 0.{}}}", dice_.Below(10));
  }

  struct Prompt {
    Twin ai_arguments;  ///< behind "FUNCTION("
    std::string pattern;
    std::string plain_arguments;
  };

  Twin Call(const Scope& scope, std::size_t depth) {
    const std::size_t width = dice_.OneIn(8) ? 3 : dice_.OneIn(2) ? 2 : 1;
    const std::string& pattern = dice_.Pick(Templates(width));
    Twin arguments;
    // One without a slot drops its argument.
    const bool dropped = pattern.find('{') == std::string::npos;
    for (std::size_t i = 0; i < width; ++i) {
      const Twin argument = Argument(scope, depth);
      arguments.ai += ", " + argument.ai;
      if (!dropped) arguments.plain += fmt::format(", CAST({} AS VARCHAR)", argument.plain);
    }
    const std::string prompt = fmt::format("PROMPT('{}'{})", pattern, arguments.ai);
    const std::string plain = fmt::format("'{}'{}", pattern, arguments.plain);
    switch (dice_.Below(8)) {
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
        return {fmt::format("AI_FILTER({}{})", prompt, Options()),
                fmt::format("ref_filter({})", plain)};
    }
  }

  Twin PlainCondition(const Scope& scope) {
    switch (dice_.Below(6)) {
      case 0:
        return Same(fmt::format("({} IS NULL)", Text(scope)));
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

  Twin Condition(const Scope& scope, std::size_t depth) {
    if (depth == 0) return dice_.OneIn(3) ? PlainCondition(scope) : Call(scope, 0);
    const std::size_t next = depth - 1;
    switch (dice_.Below(15)) {
      case 0:
        return PlainCondition(scope);
      case 14:
        return Quantified(scope, next);
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
        return Format("({} = {})", Condition(scope, next), Condition(scope, next));
      case 10:
        return InSubquery(scope, next);
      case 11:
        return Exists(scope, next);
      default:
        return Call(scope, next);
    }
  }

  Twin Exists(const Scope& scope, std::size_t depth) {
    const bool correlated = !dice_.OneIn(3);
    Scope inner;
    const Twin from = From(inner, depth, 1 + dice_.Below(2));
    Scope both = inner;
    if (correlated) both.insert(both.end(), scope.begin(), scope.end());
    return Format(dice_.OneIn(2) ? "EXISTS (SELECT 1 FROM {} WHERE {})"
                                 : "NOT EXISTS (SELECT 1 FROM {} WHERE {})",
                  from, Condition(both, depth));
  }

  Twin Quantified(const Scope& scope, std::size_t depth) {
    Scope inner;
    const Twin from = From(inner, depth, 1);
    Scope both = inner;
    if (dice_.OneIn(2)) both.insert(both.end(), scope.begin(), scope.end());
    return Format(dice_.OneIn(2) ? "({} > ANY (SELECT {} FROM {} WHERE {}))"
                                 : "({} <= ALL (SELECT {} FROM {} WHERE {}))",
                  Same(Number(scope)), Same(Number(inner)), from, Condition(both, depth));
  }

  Twin InSubquery(const Scope& scope, std::size_t depth) {
    Scope inner;
    const Twin from = From(inner, depth, 1);
    Scope both = inner;
    if (dice_.OneIn(2)) both.insert(both.end(), scope.begin(), scope.end());
    const Twin condition = Condition(both, depth);
    if (dice_.OneIn(3)) {
      return Format(dice_.OneIn(2) ? "({} IN (SELECT {} FROM {} WHERE {}))"
                                   : "({} NOT IN (SELECT {} FROM {} WHERE {}))",
                    Condition(scope, 0), Condition(inner, 0), from, condition);
    }
    return Format(dice_.OneIn(2) ? "({} IN (SELECT {} FROM {} WHERE {}))"
                                 : "({} NOT IN (SELECT {} FROM {} WHERE {}))",
                  Same(Number(scope)), Same(Number(inner)), from, condition);
  }

  // --- FROM ---

  Twin Item(Scope& scope, std::size_t depth) {
    const std::string alias = NewAlias();
    scope.push_back({alias});
    if (!ctes_.empty() && dice_.OneIn(2)) {
      return Same(fmt::format("{} AS {}", dice_.Pick(ctes_), alias));
    }
    if (depth == 0 || !dice_.OneIn(6)) {
      return Same(fmt::format("{} AS {}", dice_.Pick(world_.tables), alias));
    }
    return Format("({}) AS {}", Rows(depth - 1), Same(alias));
  }

  /// A query with the columns of a table.
  Twin Rows(std::size_t depth) {
    Scope inner;
    const Twin from = From(inner, depth, 1);
    const Twin k = dice_.OneIn(3)
                       ? Format("CASE WHEN {} THEN 1 ELSE 0 END", Condition(inner, depth))
                       : Same(Number(inner));
    const std::string id = Column(inner, "id");
    const Twin rows = Format("SELECT {} AS id, {} AS k, {} AS n, {} AS x, {} AS y FROM {} WHERE {}",
                             Same(id), k, Same(Number(inner)), Same(Text(inner)), Same(Text(inner)),
                             from, Condition(inner, depth));
    if (!dice_.OneIn(6)) return rows;
    return Format("{} ORDER BY {} LIMIT {}", rows, Same(id), Same(std::to_string(dice_.Below(6))));
  }

  Twin From(Scope& scope, std::size_t depth, std::size_t items) {
    Twin from = Item(scope, depth);
    for (std::size_t i = 1; i < items; ++i) {
      const std::size_t kind = dice_.Below(9);
      Twin item = Item(scope, depth);
      static const std::vector<std::string> kJoins = {
          "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"};
      if (kind >= kJoins.size()) {
        from = Format(kind == kJoins.size() ? "{} CROSS JOIN {}" : "{}, {}", from, item);
        continue;
      }
      const std::string& join = kJoins[kind];
      if (kind < 4 && dice_.OneIn(6)) {
        from = Format("{} {} {} USING (k)", from, Same(join), item);
        continue;
      }
      const Twin on = Condition(scope, depth > 0 ? 1 : 0);
      from = Format("{} {} {} ON {}", from, Same(join), item, JoinCondition(scope, join, on));
      if (join == "SEMI JOIN" || join == "ANTI JOIN") scope.back().visible = false;
    }
    return from;
  }

  /// DuckDB takes no subquery in the ON of some outer joins: those get one without.
  Twin JoinCondition(const Scope& scope, const std::string& join, const Twin& on) {
    const bool subquery = on.plain.find("SELECT") != std::string::npos;
    return subquery && join != "JOIN" ? Call(scope, 0) : on;
  }

  // --- blocks ---

  std::string Order(const Scope& scope) {
    std::string order;
    for (const Source& source : scope) {
      if (!source.visible) continue;
      order += fmt::format("{}{}.id", order.empty() ? "" : ", ", source.alias);
    }
    return order;
  }

  Twin SelectItem(const Scope& scope, std::size_t depth) {
    switch (dice_.Below(9)) {
      case 0:
        return Condition(scope, depth);
      case 7: {
        Scope inner;
        const Twin from = From(inner, 0, 1);
        Scope both = inner;
        both.insert(both.end(), scope.begin(), scope.end());
        return Format("(SELECT min({}) FROM {} WHERE {})", Same(Text(inner)), from,
                      Condition(both, 1));
      }
      case 8:
        return Format("rank() OVER (ORDER BY {} NULLS LAST)", Condition(scope, depth));
      case 1:
        return Format("CASE WHEN {} THEN {} ELSE {} END", Condition(scope, depth),
                      Same(Text(scope)), Same(Text(scope)));
      case 2:
        return Format("(SELECT count(*) FROM t0 WHERE t0.k = {} AND {})", Same(Number(scope)),
                      Call({{"t0"}}, 0));
      case 3:
        return Format("count(*) OVER (PARTITION BY {})", Condition(scope, depth > 0 ? 1 : 0));
      default:
        return Same(dice_.OneIn(2) ? Text(scope) : Number(scope));
    }
  }

  RandomQuery Plain(const Scope& outer, bool may_limit) {
    Scope scope;
    const Twin from = From(scope, 1, 1 + dice_.Below(3) * dice_.Below(2));
    Twin list = Same(Column(scope, "id"));
    for (std::size_t i = dice_.Below(3); i > 0; --i) {
      list = Format("{}, {}", list, SelectItem(scope, dice_.Below(2)));
    }
    RandomQuery query;
    query.sql =
        Format(dice_.OneIn(8) ? "SELECT DISTINCT {} FROM {}" : "SELECT {} FROM {}", list, from);
    Scope both = scope;
    both.insert(both.end(), outer.begin(), outer.end());
    if (!dice_.OneIn(5)) query.sql = Format("{} WHERE {}", query.sql, Condition(both, 2));
    const bool distinct = query.sql.plain.starts_with("SELECT DISTINCT");
    if (!distinct && dice_.OneIn(8))
      query.sql = Format("{} QUALIFY row_number() OVER (PARTITION BY {} ORDER BY {}) = 1",
                         query.sql, Condition(scope, 1), Same(Order(scope)));
    if (may_limit && !distinct && dice_.OneIn(3)) {
      query.ordered = true;
      query.sql = Format("{} ORDER BY ", query.sql);
      if (dice_.OneIn(2)) query.sql = Format("{}{}, ", query.sql, Condition(scope, 1));
      query.sql = Format("{}{}", query.sql, Same(Order(scope)));
      if (dice_.OneIn(2))
        query.sql = Format("{} LIMIT {}", query.sql, Same(std::to_string(dice_.Below(5))));
      if (dice_.OneIn(4))
        query.sql = Format("{} OFFSET {}", query.sql, Same(std::to_string(dice_.Below(3))));
    }
    return query;
  }

  RandomQuery Grouped(const Scope&) {
    Scope scope;
    const Twin from = From(scope, 1, 1 + dice_.Below(2));
    const Twin key = dice_.OneIn(2) ? Condition(scope, 1) : Same(Number(scope));
    RandomQuery query;
    Twin list = Format("{} AS g, count(*), sum(CASE WHEN {} THEN 1 ELSE 0 END), bool_or({})", key,
                       Condition(scope, 1), Condition(scope, 1));
    if (dice_.OneIn(2)) list = Format("{}, count(*) FILTER (WHERE {})", list, Condition(scope, 1));
    if (dice_.OneIn(2)) {
      list.ai += fmt::format(", AI_FILTER(PROMPT('good? {{0}}', max({})))", scope[0].alias + ".x");
      list.plain += fmt::format(", ref_filter('good? {{0}}', max({}))", scope[0].alias + ".x");
    }
    query.sql = Format("SELECT {} FROM {} WHERE {} GROUP BY {}", list, from, Condition(scope, 1),
                       dice_.OneIn(2) ? Same("1") : Same("g"));
    if (dice_.OneIn(3)) {
      query.sql.ai += fmt::format(
          " HAVING AI_FILTER(PROMPT('{{0}} warm?', min({}.y))) IS NOT FALSE", scope[0].alias);
      query.sql.plain +=
          fmt::format(" HAVING ref_filter('{{0}} warm?', min({}.y)) IS NOT FALSE", scope[0].alias);
    }
    return query;
  }

  RandomQuery SetOperation() {
    static const std::vector<std::string> kOperations = {"UNION", "UNION ALL", "EXCEPT",
                                                         "INTERSECT", "EXCEPT ALL"};
    RandomQuery query;
    query.sql = Format("({}) {} ({})", Rows(1), Same(dice_.Pick(kOperations)), Rows(1));
    return query;
  }

  RandomQuery WithCte() {
    const Twin rows = Rows(1);
    ctes_.push_back("c");
    RandomQuery query = Plain({}, true);
    query.sql =
        Format("WITH c AS {}({}) {}", Same(dice_.OneIn(3) ? "MATERIALIZED " : ""), rows, query.sql);
    return query;
  }

  const World& world_;
  Dice& dice_;
  std::vector<std::string> ctes_;
  std::size_t aliases_ = 0;
};

}  // namespace

RandomQuery MakeQuery(const World& world, Dice& dice) { return Generator(world, dice).Statement(); }
RowQuery MakeRowQuery(const World& world, Dice& dice) { return Generator(world, dice).OverRows(); }

}  // namespace quail::test
