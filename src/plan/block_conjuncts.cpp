#include <algorithm>
#include <bit>

#include "fmt/format.h"
#include "plan/block_binder.h"

/// BlockBinder: AND terms become conjuncts of the plan, calls elsewhere computed columns.
namespace quail::plan {

using sql::Json;

void BlockBinder::PlanCoreTerms() {
  AddUsingTerms();
  for (Term& term : terms_) {
    const bool subquery_free = !term.reads.has_subquery || place_.ctes.empty();
    if (!term.asks) {
      const bool between = IsUsable(term) && !term.pushed && std::popcount(term.reads.items) > 1;
      if (between && subquery_free && !term.reads.is_volatile) {
        AddRelationalConjunct(writer_.PrintExpression(*term.node), term.reads.items);
      }
      continue;
    }
    term.reads = scope_.ReadsOf(*term.node);
    const Reads& reads = term.reads;
    const bool plannable = term.core && !term.deep && !reads.outside && !reads.has_subquery &&
                           !reads.is_volatile && reads.items != 0;
    if (!plannable) {
      term.core = false;
      continue;
    }
    AiConjunct conjunct;
    conjunct.sql = writer_.PrintExpression(*term.node);
    conjunct.calls = GuardedCallsOf(*term.node, ValueUse::kFilter, scope_, writer_);
    conjunct.relations = RelationsOf(reads.items);
    conjunct.negated = sql::TypeOf(*term.node) == "OPERATOR_NOT";
    const Json& inner = conjunct.negated ? (*term.node)["children"][0] : *term.node;
    if (inner.contains(kCallMark)) {
      const Call& call = state_.plan.calls[inner[kCallMark].get<std::size_t>()];
      conjunct.is_call = call.kind == CallKind::kFilter && !call.options.return_error_details;
    }
    conjunct.negated = conjunct.negated && conjunct.is_call;
    state_.plan.ai_conjuncts.push_back(std::move(conjunct));
  }
}

/// ON of joins that keep rows without a partner: asked on the pairs that the other terms of that ON
/// leave.
void BlockBinder::PlanJoinTerms() {
  for (const FromJoin& join : from_.joins) {
    const Json& condition = (*join.node)["condition"];
    if (join.core || !condition.is_object() || !ContainsLookup(condition)) continue;
    const auto calls = GuardedCallsOf(condition, ValueUse::kFilter, scope_, writer_);
    Json pairs = *join.node;
    pairs["join_type"] = "INNER";
    pairs["condition"] = nullptr;
    pairs["ref_type"] = "CROSS";
    AddComputed(calls, std::move(pairs), {});
  }
}

/// FROM without the ON terms that are AND terms of the block: some of them may not be testable yet.
Json BlockBinder::FromWithoutCoreTerms() const {
  std::vector<Json> conditions;
  for (const FromJoin& join : from_.joins) {
    conditions.push_back((*join.node)["condition"]);
    if (join.core && conditions.back().is_object()) (*join.node)["condition"] = writer_.truth();
  }
  Json from = select_["from_table"];
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    (*from_.joins[i].node)["condition"] = std::move(conditions[i]);
  }
  return from;
}

void BlockBinder::PlanComputed() {
  std::vector<Json> available;
  std::vector<Term*> open;
  for (Term& term : terms_) {
    const bool fit = !term.deep && !term.reads.outside && !term.reads.is_volatile && !term.pushed &&
                     !(term.reads.has_subquery && !term.asks && place_.nested);
    if (term.asks && !term.core) {
      open.push_back(&term);
    } else if (fit) {
      available.push_back(*term.node);
    }
  }
  const Json from = FromWithoutCoreTerms();
  for (const Term* term : open) {
    AddComputed(GuardedCallsOf(*term->node, ValueUse::kFilter, scope_, writer_), from, available);
    if (!term->reads.outside && !term->reads.is_volatile && !term->deep) {
      available.push_back(*term->node);
    }
  }
  for (Json* expression : sql::ExpressionsOf(select_)) {
    if (expression == &select_["where_clause"]) continue;
    AddComputed(GuardedCallsOf(*expression, ValueUse::kAny, scope_, writer_), from, available);
  }
}

void BlockBinder::AddComputed(const std::vector<GuardedCall>& calls, Json from,
                              const std::vector<Json>& terms) {
  for (const GuardedCall& guarded : calls) {
    const Call& call = state_.plan.calls[guarded.call.value()];
    std::vector<Json> list;
    for (const Argument& argument : call.arguments) {
      const std::size_t item = argument.relation.value() - first_relation_;
      list.push_back(writer_.ParseExpression(
          argument.id_column.empty()
              ? fmt::format("quail_text_id(CAST({} AS VARCHAR))", argument.sql)
              : ColumnSql(from_.items[item].alias, argument.id_column)));
    }
    if (list.empty()) list.push_back(writer_.ParseExpression("1"));
    std::vector<Json> where = terms;
    if (!guarded.guard.empty()) where.push_back(writer_.ParseExpression(guarded.guard));
    state_.plan.computed.push_back({guarded.call, WithVisibleCtes(writer_.MakeSelect(
                                                      std::move(list), from, std::move(where)))});
  }
}

}  // namespace quail::plan
