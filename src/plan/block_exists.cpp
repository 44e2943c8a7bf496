#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"
#include "plan/lazy_calls.h"
#include "sql/ai_function.h"

/// BlockBinder: the subquery of an EXISTS, which needs no more than one row.
namespace quail::plan {

using sql::Json;

namespace {

/// Whether an item of the SELECT list keeps the rows of FROM as they are: it is no call.
bool IsPlainItem(const Json& node) {
  const std::string_view kind = sql::ClassOf(node);
  return kind == "CONSTANT" || kind == "COLUMN_REF" || kind == "STAR";
}

/// Whether a term is nothing but a call that gives a verdict about rows, or NOT of one.
bool IsCall(const Json& term) {
  const Json& inner = sql::TypeOf(term) == "OPERATOR_NOT" ? term["children"][0] : term;
  if (!IsAiCall(inner) || !sql::HasClass(inner, "COLUMN_REF")) return false;
  return sql::FindAiFunction(sql::FunctionName(inner))->readout == sql::Readout::kVerdict;
}

/// A text that tells values of one type apart.
std::string IdentityOf(const std::string& column) {
  return fmt::format(
      "quail_text_id(CASE WHEN typeof({0}) IN ('BOOLEAN', 'TINYINT', 'SMALLINT', 'INTEGER', "
      "'BIGINT', 'HUGEINT', 'FLOAT', 'DOUBLE', 'VARCHAR', 'DATE', 'TIMESTAMP') THEN CAST({0} AS "
      "VARCHAR) ELSE CAST({0} AS VARCHAR) || ' ' || CAST(to_json({0}) AS VARCHAR) END)",
      column);
}

}  // namespace

/// Every row of FROM that meets all AND terms is a row of the subquery: a term asks, and all can be
/// tested on one row after the other.
bool BlockBinder::StopsEarly() {
  const auto& list = select_["select_list"];
  const bool plain = std::all_of(list.begin(), list.end(), IsPlainItem) &&
                     select_["group_expressions"].empty() && sql::IsAbsent(select_, "having") &&
                     sql::IsAbsent(select_, "qualify") && sql::IsAbsent(select_, "sample") &&
                     select_["modifiers"].empty();
  if (!place_.exists || place_.on_demand || !plain) return false;
  const bool joined = std::all_of(from_.joins.begin(), from_.joins.end(), [](const auto& join) {
    return join.core && (*join.node)["using_columns"].empty() &&
           sql::TextMember(*join.node, "ref_type") != "NATURAL";
  });
  if (!joined) return false;
  CollectTerms();
  const auto fits = [](const Term& term) {
    return !term.deep && !term.reads.has_subquery && !term.reads.is_volatile &&
           !sql::HasClass(*term.node, "LAMBDA") && HoldsUndecided(*term.node);
  };
  const bool stops =
      std::any_of(terms_.begin(), terms_.end(), [](const Term& term) { return term.asks; }) &&
      std::all_of(terms_.begin(), terms_.end(), fits);
  if (!stops) terms_.clear();
  return stops;
}

/// Whether a row of the subquery is one, stands in its WHERE. The other terms stand around the
/// lookups too: none must be read of a row that they exclude.
void BlockBinder::BindEarlyStop() {
  on_demand_ = true;
  std::vector<Json> others;
  std::vector<Json*> asking;
  std::vector<Json> outside;
  for (const Term& term : terms_) {
    CollectOutside(*term.node, outside);
    if (term.asks) {
      asking.push_back(term.node);
    } else {
      others.push_back(*term.node);
    }
  }
  std::string row;
  for (const Json& column : outside) {
    row += ", " + IdentityOf(writer_.PrintExpression(column));
  }
  const std::size_t stop = state_.plan.early_stops.size();
  early_stop_ = EarlyStopLookup{stop, fmt::format("{}{}", outside.size(), row)};
  const bool one_decides = asking.size() == 1 && IsCall(*asking[0]);
  state_.plan.early_stops.push_back(
      {{}, !one_decides, one_decides && sql::TypeOf(*asking[0]) == "OPERATOR_NOT"});
  std::vector<Json> conditions;
  for (Json* term : asking) {
    BindCallsIn(*term);
    conditions.push_back(std::exchange(*term, writer_.truth()));
  }
  early_stop_.reset();
  Json condition = writer_.MakeAnd(std::move(conditions));
  ReadLazily(condition, ValueUse::kFilter, scope_, writer_);
  if (!others.empty()) {
    Json guarded = writer_.ParseExpression("CASE WHEN quail_others THEN quail_asking END");
    guarded["case_checks"][0]["when_expr"] = writer_.MakeAnd(std::move(others));
    guarded["case_checks"][0]["then_expr"] = std::move(condition);
    condition = std::move(guarded);
  }
  if (!one_decides) condition = MetCondition(std::move(condition), stop, row);
  Json& where = select_["where_clause"];
  where = where.is_object() ? writer_.MakeAnd({std::move(where), std::move(condition)})
                            : std::move(condition);
}

/// The enclosing queries' columns and aggregates that a condition of WHERE or ON reads; what no
/// slot of a prompt uses is not read.
void BlockBinder::CollectOutside(Json& condition, std::vector<Json>& columns) const {
  if (IsAiCall(condition)) {
    AiCall read = ReadAiCall(condition, source_);
    for (Json& argument : read.prompt.arguments) CollectOutside(argument, columns);
  } else if (sql::ClassOf(condition) == "FUNCTION" && IsAggregate(sql::FunctionName(condition))) {
    columns.push_back(condition);  // of groups: it stands for its columns
  } else if (!sql::ColumnPath(condition).empty()) {
    scope_.CollectOutside(condition, columns);
  } else {
    sql::ForEachChild(condition, [&](Json& child) { CollectOutside(child, columns); });
  }
}

/// `row`: ", id" of each column that tells the outer query's row.
Json BlockBinder::MetCondition(Json condition, std::size_t stop, const std::string& row) const {
  Json met = writer_.ParseExpression(
      fmt::format("quail_met(CAST(quail_condition AS INTEGER), {}{})", stop, row));
  met["children"][0]["child"] = std::move(condition);
  return met;
}

}  // namespace quail::plan
