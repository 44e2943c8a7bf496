#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"
#include "sql/ai_function.h"

/// BlockBinder: the subquery of an EXISTS whose rows one call decides, so that it can stop early.
namespace quail::plan {

using sql::Json;

namespace {

/// Whether an item of the SELECT list keeps the rows of FROM as they are: it is no call.
bool IsPlainItem(const Json& node) {
  const std::string_view kind = sql::ClassOf(node);
  return kind == "CONSTANT" || kind == "COLUMN_REF" || kind == "STAR";
}

bool HasClass(const Json& node, std::string_view kind) {
  if (sql::ClassOf(node) == kind) return true;
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(),
                     [kind](const Json& child) { return HasClass(child, kind); });
}

/// Whether a term is nothing but a call that gives a verdict about rows, or NOT of one.
bool IsCall(const Json& term) {
  const Json& inner = sql::TypeOf(term) == "OPERATOR_NOT" ? term["children"][0] : term;
  if (!IsAiCall(inner) || !HasClass(inner, "COLUMN_REF")) return false;
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

/// Every row of FROM that meets all AND terms is a row of the subquery, and only one of the terms
/// asks: a bare call or NOT of one.
bool BlockBinder::StopsEarly() {
  const auto& list = select_["select_list"];
  const bool plain = std::all_of(list.begin(), list.end(), IsPlainItem) &&
                     select_["group_expressions"].empty() && select_["having"].is_null() &&
                     select_["qualify"].is_null() && select_["sample"].is_null() &&
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
           !HasClass(*term.node, "LAMBDA") && (!term.asks || IsCall(*term.node));
  };
  const auto asking =
      std::count_if(terms_.begin(), terms_.end(), [](const Term& term) { return term.asks; });
  const bool one_decides = asking == 1 && std::all_of(terms_.begin(), terms_.end(), fits);
  if (!one_decides) terms_.clear();
  return one_decides;
}

/// The other terms stand around the lookup too: it must be read of no row that they exclude.
void BlockBinder::BindEarlyStop() {
  on_demand_ = true;
  std::vector<Json> others;
  Json* asking = nullptr;
  std::vector<Json> outside;
  for (const Term& term : terms_) {
    scope_.CollectOutside(*term.node, outside);
    if (term.asks) {
      asking = term.node;
    } else {
      others.push_back(*term.node);
    }
  }
  std::string row;
  for (const Json& column : outside) {
    row += ", " + IdentityOf(writer_.PrintExpression(column));
  }
  early_stop_ =
      EarlyStopLookup{state_.plan.early_stops.size(), fmt::format("{}{}", outside.size(), row)};
  state_.plan.early_stops.push_back({CallId(0), sql::TypeOf(*asking) == "OPERATOR_NOT"});
  BindCallsIn(*asking);
  if (others.empty()) return;
  Json guarded = writer_.ParseExpression("CASE WHEN quail_others THEN quail_asking END");
  guarded["case_checks"][0]["when_expr"] = writer_.MakeAnd(std::move(others));
  guarded["case_checks"][0]["then_expr"] = std::exchange(*asking, writer_.truth());
  Json& where = select_["where_clause"];
  where = where.is_object() ? writer_.MakeAnd({std::move(where), std::move(guarded)})
                            : std::move(guarded);
}

}  // namespace quail::plan
