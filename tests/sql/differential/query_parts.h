#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "query_generator.h"
#include "world.h"

namespace quail::test {

inline Twin Same(const std::string& sql) { return {sql, sql}; }
inline Twin Same(std::size_t number) { return Same(std::to_string(number)); }

/// Both spellings through one format with `{}` for each part.
template <typename... Parts>
Twin Format(fmt::string_view pattern, const Parts&... parts) {
  return {fmt::format(fmt::runtime(pattern), parts.ai...),
          fmt::format(fmt::runtime(pattern), parts.plain...)};
}

/// A FROM item's alias. Each has the columns of a table, and its id is unique.
struct Source {
  std::string alias;
  bool is_table = false;  ///< it has row ids
  bool visible = true;
};

using Scope = std::vector<Source>;

/// Random parts of one statement; no two of its FROM items have the same alias.
class QueryParts {
 public:
  QueryParts(const World& world, Dice& dice) : world_(world), dice_(dice) {}

  std::string NewAlias() { return fmt::format("a{}", aliases_++); }
  /// Names that a FROM may use as it uses tables.
  void AddTable(const std::string& name) { extra_tables_.push_back(name); }

  // --- expressions ---
  std::string Column(const Scope& scope, const char* name);
  std::string Text(const Scope& scope) { return Column(scope, dice_.OneIn(2) ? "x" : "y"); }
  std::string Number(const Scope& scope) { return Column(scope, dice_.OneIn(2) ? "k" : "n"); }
  /// The row id of a table; where none is visible a number.
  std::string RowId(const Scope& scope);
  /// The ids of all that is visible: a total order.
  std::string Order(const Scope& scope);
  Twin Call(const Scope& scope, std::size_t depth);
  /// A BOOLEAN over the columns of `scope`.
  Twin Condition(const Scope& scope, std::size_t depth);
  /// A BOOLEAN over aggregates of one group.
  Twin GroupCondition(const Scope& scope);
  Twin SelectItem(const Scope& scope, std::size_t depth);
  /// LIMIT and OFFSET behind a total order, or nothing.
  Twin Limit();

  // --- FROM ---
  Twin From(Scope& scope, std::size_t depth, std::size_t items);
  /// Queries with the columns of a table and unique ids.
  Twin Rows(std::size_t depth);
  Twin AnyRows(std::size_t depth);

  Dice& dice() { return dice_; }
  const World& world() const { return world_; }

 private:
  Twin Argument(const Scope& scope, std::size_t depth);
  std::string Hint();
  Twin Concatenation(const Scope& scope);
  Twin PlainCondition(const Scope& scope);
  Twin Compared(const Scope& scope, std::size_t depth);
  Twin Exists(const Scope& scope, std::size_t depth);
  Twin ExistsOfGroup(const std::string& group);
  Twin ExistsOfWith(const Scope& scope, std::size_t depth);
  Twin GroupExists(const Scope& scope, std::size_t depth);
  Twin Quantified(const Scope& scope, std::size_t depth);
  Twin NestedText(const Scope& scope, std::size_t depth);
  Twin RowComparison(const Scope& scope, std::size_t depth);
  Twin InSubquery(const Scope& scope, std::size_t depth);
  Twin ScalarCondition(const Scope& scope, std::size_t depth);
  Twin Item(Scope& scope, std::size_t depth);
  Twin LateralRows(const Scope& scope);
  Twin Lateral(Scope& scope);
  Twin RuledJoin(Scope& scope, std::size_t depth);
  Twin AsOf(const Twin& left, const Twin& right, const Scope& scope);
  Twin GroupedRows(std::size_t depth);
  Twin UnitedRows(std::size_t depth);
  Twin StructRows(std::size_t depth);
  Twin RowsWithMore();
  Twin CutRows(std::size_t depth);
  Twin UnnestedRows(std::size_t depth);
  Twin ValueRows();
  Twin JoinCondition(const Scope& scope, const std::string& join, const Twin& on);
  /// `inner` alone, or both scopes: a correlated subquery's.
  Scope Seen(const Scope& inner, const Scope& outer, bool correlated);

  const World& world_;
  Dice& dice_;
  std::vector<std::string> extra_tables_;
  std::size_t aliases_ = 0;
};

}  // namespace quail::test
