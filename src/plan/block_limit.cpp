#include <algorithm>
#include <string_view>

#include "fmt/format.h"
#include "plan/block_binder.h"
#include "plan/row_values.h"
#include "sql/lexer.h"

/// BlockBinder: LIMIT, and the rows that it leaves.
namespace quail::plan {

using sql::Json;

namespace {

/// Whether LIMIT and OFFSET are constants.
bool HasConstantCounts(const Json& modifier) {
  return !sql::IsAbsent(modifier, "limit") && ConstantCount(modifier, "limit") &&
         ConstantCount(modifier, "offset");
}

}  // namespace

/// LIMIT counts rows that the planned terms alone decide.
void BlockBinder::SetLimit() {
  LogicalPlan& plan = state_.plan;
  const Json& modifiers = select_["modifiers"];
  if (plan.ai_conjuncts.size() == first_conjunct_ || modifiers.size() != 1) return;
  const auto own = plan.computed.begin() + static_cast<std::ptrdiff_t>(first_computed_);
  const bool decided_after =
      std::all_of(own, plan.computed.end(), [](const auto& call) { return call.after_limit; });
  if (!decided_after || sql::TypeOf(modifiers[0]) != "LIMIT_MODIFIER" || IsGrouped()) return;
  if (!sql::IsAbsent(select_, "qualify")) return;
  if (!sql::IsAbsent(select_, "sample") || !IsOfEachRow(select_["select_list"], state_.catalog))
    return;
  for (const FromJoin& join : from_.joins) {
    if (!join.core && sql::TextMember(*join.node, "join_type") != "LEFT") return;
  }
  for (const Term& term : terms_) {
    const bool counted = term.pushed || (term.asks && term.core) ||
                         (IsUsable(term) && !term.reads.has_subquery && !term.reads.is_volatile);
    if (!counted) return;
  }
  if (!HasConstantCounts(modifiers[0])) return;
  RowLimit limit{*ConstantCount(modifiers[0], "limit") + *ConstantCount(modifiers[0], "offset"),
                 {}};
  for (std::size_t i = first_conjunct_; i < plan.ai_conjuncts.size(); ++i) {
    limit.conjuncts.push_back(i);
  }
  plan.limits.push_back(std::move(limit));
}

/// Whether the block ends in LIMIT over rows whose order and conditions are known before the calls
/// of its select list are asked.
bool BlockBinder::LimitsPlainRows() const {
  const Json& modifiers = select_["modifiers"];
  const bool ordered = modifiers.size() == 2 && sql::TypeOf(modifiers[0]) == "ORDER_MODIFIER";
  if (modifiers.size() != 1 && !ordered) return false;
  const Json& limit = modifiers[modifiers.size() - 1];
  if (sql::TypeOf(limit) != "LIMIT_MODIFIER" || !HasConstantCounts(limit)) return false;
  if (IsGrouped() || !sql::IsAbsent(select_, "qualify") || !sql::IsAbsent(select_, "sample"))
    return false;
  if (!rows_known_ || items_.empty() || !IsOfEachRow(select_["select_list"], state_.catalog))
    return false;
  if (ordered && !IsOfEachRow(modifiers[0], state_.catalog)) return false;
  return OrderedItems().has_value();
}

/// Positions of the select list's items that ORDER BY means by alias or number; nullopt where it
/// means something else than rows' expressions.
std::optional<std::set<std::size_t>> BlockBinder::OrderedItems() const {
  std::set<std::size_t> items;
  if (sql::TypeOf(select_["modifiers"][0]) != "ORDER_MODIFIER") return items;
  const Json& list = select_["select_list"];
  for (const Json& order : select_["modifiers"][0]["orders"]) {
    const Json& expression = order["expression"];
    const Reads reads = scope_.ReadsOf(expression);
    if (reads.has_subquery || reads.is_volatile || reads.aggregates) return std::nullopt;
    if (ContainsOnDemand(expression) || sql::ClassOf(expression) == "STAR") return std::nullopt;
    const auto constant = sql::ConstantOf(expression);
    const std::vector<std::string> path = sql::ColumnPath(expression);
    if (constant && constant->kind == sql::ConstantKind::kNumber) {
      const auto position = static_cast<std::size_t>(constant->number);
      for (std::size_t i = 0; i < list.size() && i < position; ++i) {
        if (sql::ClassOf(list[i]) == "STAR") return std::nullopt;
      }
      if (position < 1 || position > list.size()) return std::nullopt;
      items.insert(position - 1);
      continue;
    }
    const auto named = path.size() == 1 ? KeyNamed(path[0]) : std::nullopt;
    // A star may have another column of that name.
    if (named && sql::AliasOf(list[*named]).empty() && sql::HasStar(list)) return std::nullopt;
    if (named) items.insert(*named);
    if (!named && reads.outside) return std::nullopt;
  }
  for (const std::size_t i : items) {
    const Reads reads = scope_.ReadsOf(list[i]);
    const bool of_rows = !reads.outside && !reads.has_subquery && !reads.is_volatile;
    if (!of_rows || ContainsOnDemand(list[i])) return std::nullopt;
  }
  return items;
}

std::optional<std::size_t> BlockBinder::KeyNamed(const std::string& name) const {
  if (const auto item = ItemNamed(name)) return item;
  const auto& list = select_["select_list"].get_ref<const Json::array_t&>();
  const auto is_column = [&name](const Json& item) {
    const std::vector<std::string> path = sql::ColumnPath(item);
    return !path.empty() && sql::AliasOf(item).empty() && sql::SameWord(path.back(), name);
  };
  if (std::ranges::count_if(list, is_column) != 1) return std::nullopt;
  const auto item = std::ranges::find_if(list, is_column);
  // Without a qualifier it is the column that the key would be by itself.
  if (sql::ColumnPath(*item).size() == 1) return std::nullopt;
  return item - list.begin();
}

/// A key of ORDER BY that means an item of the select list, by name or number, becomes the item.
void BlockBinder::SpellItem(Json& key) const {
  const Json& list = select_["select_list"];
  const auto constant = sql::ConstantOf(key);
  const std::vector<std::string> path = sql::ColumnPath(key);
  auto item = path.size() == 1 ? KeyNamed(path[0]) : std::nullopt;
  if (constant && constant->kind == sql::ConstantKind::kNumber) {
    item = static_cast<std::size_t>(constant->number) - 1;
  }
  if (!item) return;
  key = Json(list[*item]);
  key["alias"] = "";
}

/// The block's ORDER BY, made total by the order of the input, and its LIMIT: they leave the same
/// rows wherever they stand. Without the select list its items have to be spelt out; with it a
/// column that an item is could be taken for another item of that name.
Json BlockBinder::LimitModifiers(bool has_list) const {
  Json modifiers = select_["modifiers"];
  Json orders = Json::array();
  if (sql::TypeOf(modifiers[0]) == "ORDER_MODIFIER") {
    orders = modifiers[0]["orders"];
    modifiers.erase(0);
  }
  if (!has_list) {
    for (Json& order : orders) SpellItem(order["expression"]);
  }
  std::string rows;
  for (const FromItem& item : from_.items) {
    if (!item.visible) continue;
    rows += fmt::format("{}{}", rows.empty() ? "" : ", ", ColumnSql(item.alias, "quail_row"));
  }
  Json modifier = writer_.ParseOrders(rows);
  for (const Json& order : modifier["orders"]) orders.push_back(order);
  modifier["orders"] = std::move(orders);
  modifiers.insert(modifiers.begin(), std::move(modifier));
  return modifiers;
}

}  // namespace quail::plan
