#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "plan/block_binder.h"

/// BlockBinder: calls that are no AND terms become computed columns of the plan.
namespace quail::plan {

using sql::Json;

void BlockBinder::PlanComputed() {
  std::vector<Json> available;
  std::vector<Term*> open;
  for (Term& term : terms_) {
    const bool known = !term.deep && !term.reads.outside && !term.reads.is_volatile &&
                       !(term.reads.has_subquery && !term.asks && place_.nested) &&
                       !ContainsOnDemand(*term.node);
    rows_known_ = rows_known_ && known;
    if (term.asks && !term.core) {
      open.push_back(&term);
    } else if (known && !term.pushed) {
      available.push_back(*term.node);
    }
  }
  Json from = FromWithoutCoreTerms();
  rows_known_ = !KeepKnownJoins(from, ~ItemSet{0}) && rows_known_;
  from = WithPairTables(std::move(from), ~ItemSet{0}, available);
  for (const Term* term : open) {
    AddComputed(GuardedCallsOf(*term->node, ValueUse::kFilter, scope_, writer_),
                {from, VisibleItems(), available});
    const bool known = !term->reads.outside && !term->reads.is_volatile && !term->deep;
    if (known && !ContainsOnDemand(*term->node)) available.push_back(*term->node);
  }
  limits_rows_ = LimitsPlainRows();
  const bool several_sets = select_["group_sets"].size() > 1;
  for (Json* expression : sql::ExpressionsOf(select_)) {
    const Json& list = select_["select_list"];
    const bool in_list = std::any_of(
        list.begin(), list.end(), [expression](const Json& item) { return &item == expression; });
    if (expression == &select_["where_clause"] || (limits_rows_ && in_list)) continue;
    AddComputed(GuardedCallsOf(*expression, ValueUse::kAny, scope_, writer_, several_sets),
                {from, VisibleItems(), available});
  }
  if (limits_rows_) PlanSelectList(from, available);
}

/// Under a LIMIT over plain rows: items that give the order are needed of every row, the others of
/// the rows that are left.
void BlockBinder::PlanSelectList(const Json& from, const std::vector<Json>& terms) {
  const auto ordered = OrderedItems();
  const Json limited = LimitModifiers(false);
  Json& list = select_["select_list"];
  for (const bool gives_order : {true, false}) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (ordered->contains(i) != gives_order) continue;
      AddComputed(GuardedCallsOf(list[i], ValueUse::kAny, scope_, writer_),
                  {from, VisibleItems(), terms, gives_order ? Json(nullptr) : limited});
    }
  }
}

ItemSet BlockBinder::VisibleItems() const {
  ItemSet items = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (from_.items[i].visible) items |= SetOf(i);
  }
  return items;
}

std::vector<Json> BlockBinder::IdColumnsOf(const Call& call) const {
  std::vector<Json> columns;
  for (const Argument& argument : call.arguments) {
    const std::size_t item = argument.relation.value() - first_relation_;
    columns.push_back(writer_.ParseExpression(
        argument.id_column.empty() ? fmt::format("quail_text_id(CAST({} AS VARCHAR))", argument.sql)
                                   : ColumnSql(from_.items[item].alias, argument.id_column)));
  }
  if (columns.empty()) columns.push_back(writer_.ParseExpression("1"));
  return columns;
}

void BlockBinder::AddComputed(const std::vector<GuardedCall>& calls, const DomainRows& rows) {
  OpenRows open;
  for (const GuardedCall& guarded : calls) {
    NoteCase(guarded);
    const bool limited = !rows.modifiers.is_null();
    if (limited) {
      state_.plan.computed.push_back({guarded.call, LimitedDomainSql(guarded, rows), true});
      continue;
    }
    std::string keep;
    if (open.guards.GoOn(guarded) && rows.items != 0) keep = KeepOpenRows(guarded, rows, open);
    state_.plan.computed.push_back(
        {guarded.call, DomainSql(guarded, rows, open), false, std::move(keep)});
  }
}

/// The conditions of a domain, of which those of `open` are tested on its table.
std::vector<Json> BlockBinder::OpenTerms(const std::shared_ptr<const Guard>& guard,
                                         const DomainRows& rows, const OpenRows& open) const {
  std::vector<Json> terms = rows.terms;
  if (!open.guards.none()) terms.push_back(open.condition);
  const std::string guards = open.guards.ConditionSql(guard);
  if (!guards.empty()) terms.push_back(writer_.ParseExpression(guards));
  return terms;
}

std::string BlockBinder::DomainSql(const GuardedCall& guarded, const DomainRows& rows,
                                   const OpenRows& open) const {
  return WithVisibleCtes(writer_.MakeSelect(IdColumnsOf(state_.plan.calls[guarded.call.value()]),
                                            rows.from, OpenTerms(guarded.guard, rows, open)));
}

/// Where a LIMIT picks the rows, guards pick among them.
std::string BlockBinder::LimitedDomainSql(const GuardedCall& guarded,
                                          const DomainRows& rows) const {
  std::vector<Json> list = IdColumnsOf(state_.plan.calls[guarded.call.value()]);
  list.push_back(writer_.ParseExpression(guarded.guard ? ConditionSql(guarded.guard) : "TRUE"));
  std::string names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i]["alias"] = fmt::format("q{}", i);
    if (i + 1 < list.size()) names += fmt::format("{}q{}", i == 0 ? "" : ", ", i);
  }
  const std::string condition = fmt::format("q{}", list.size() - 1);
  Json select = writer_.MakeSelect(std::move(list), rows.from, rows.terms);
  select["modifiers"] = rows.modifiers;
  return fmt::format("SELECT {} FROM ({}) WHERE {}", names, WithVisibleCtes(std::move(select)),
                     condition);
}

/// Keeps open rows (KeptGuards) by their items' row numbers. Returns the statement that does it.
std::string BlockBinder::KeepOpenRows(const GuardedCall& guarded, const DomainRows& rows,
                                      OpenRows& open) {
  const std::string table = state_.NewTable();
  std::vector<Json> list;
  std::string same;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (!Has(rows.items, i)) continue;
    const std::string row = ColumnSql(from_.items[i].alias, "quail_row");
    same += fmt::format("{}{}.q{} IS NOT DISTINCT FROM {}", same.empty() ? "" : " AND ", table,
                        list.size(), row);
    list.push_back(writer_.ParseExpression(fmt::format("{} AS q{}", row, list.size())));
  }
  const std::string query = WithVisibleCtes(
      writer_.MakeSelect(std::move(list), rows.from, OpenTerms(guarded.guard->before, rows, open)));
  open.guards.Keep(guarded);
  open.condition =
      writer_.ParseExpression(fmt::format("EXISTS (SELECT 1 FROM {} WHERE {})", table, same));
  state_.plan.cleanup_sql.push_back(fmt::format("DROP TABLE IF EXISTS {}", table));
  return fmt::format("CREATE TEMP TABLE {} AS {}", table, query);
}

}  // namespace quail::plan
