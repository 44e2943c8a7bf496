#include "plan/lazy_calls.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/row_values.h"

namespace quail::plan {

namespace {

using sql::Json;

bool IsLookup(const Json& node) { return node.is_object() && node.contains(kOnDemandMark); }

bool IsConditional(const Json& node) {
  const std::string_view type = sql::TypeOf(node);
  return type == "CONJUNCTION_AND" || type == "CONJUNCTION_OR" || type == "OPERATOR_COALESCE" ||
         sql::ClassOf(node) == "CASE" || sql::ClassOf(node) == "LAMBDA";
}

/// Whether each lookup on demand in `node` is read wherever `node` is, of the same row.
bool AlwaysReadsLookups(const Json& node, Catalog& catalog) {
  if (!node.is_structured() || !ContainsOnDemand(node) || IsLookup(node)) return true;
  if (node.is_object() && (IsConditional(node) || MayAggregate(node, catalog))) return false;
  return std::all_of(node.begin(), node.end(),
                     [&](const Json& child) { return AlwaysReadsLookups(child, catalog); });
}

/// Whether a term is NULL, and so not TRUE, while its verdict is undecided: a verdict or NOT of
/// one.
bool IsVerdict(const Json& term) {
  const Json& inner = sql::TypeOf(term) == "OPERATOR_NOT" ? term["children"][0] : term;
  return IsLookup(inner) && sql::FunctionName(inner).starts_with("quail_verdict");
}

class LazyWalk {
 public:
  LazyWalk(const NameScope& scope, const SqlWriter& writer) : scope_(scope), writer_(writer) {}

  void Visit(Json& node, ValueUse use) {
    if (IsLookup(node) || sql::IsQueryNode(node) || !ContainsOnDemand(node)) return;
    const std::string_view type = sql::TypeOf(node);
    if (type == "CONJUNCTION_AND" || type == "CONJUNCTION_OR") return VisitTerms(node, use);
    if (type == "OPERATOR_COALESCE") return VisitCoalesce(node);
    if (sql::ClassOf(node) == "CASE") return VisitCase(node, use);
    if (sql::FunctionName(node) == "nullif") return VisitNullif(node);
    sql::ForEachChild(node, [this](Json& child) { Visit(child, ValueUse::kAny); });
  }

 private:
  /// Parts that are evaluated in turn, as a CASE: the engine evaluates the terms of an AND and of
  /// an OR in any order, each on all rows.
  struct Turns {
    Json checks = Json::array();

    void Add(Json when, Json then) {
      checks.push_back({{"when_expr", std::move(when)}, {"then_expr", std::move(then)}});
    }
  };
  /// A term that `closes` holds of ends an AND or an OR with the value `closed`.
  struct Ending {
    const char* closes;
    Json closed;
    bool by_null;  ///< a NULL does
    bool filter;
  };
  Ending EndingOf(bool is_and, bool filter) {
    if (!is_and) return {"quail_x IS TRUE", Parsed("TRUE"), false, filter};
    return {filter ? "quail_x IS NOT TRUE" : "quail_x IS FALSE", Parsed("FALSE"), filter, filter};
  }

  /// Terms without calls come first. What a filter does not let through is FALSE at once; elsewhere
  /// the last part puts together what of it is NULL.
  void VisitTerms(Json& node, ValueUse use) {
    const bool filter = use == ValueUse::kFilter;
    const Ending ending = EndingOf(sql::TypeOf(node) == "CONJUNCTION_AND", filter);
    Turns turns;
    std::vector<Json> apart;
    std::vector<Json> asking;
    for (Json& term : node["children"]) {
      const bool asks = ContainsOnDemand(term);
      if (asks && (filter || CanRepeat(term))) {
        asking.push_back(std::move(term));
        continue;
      }
      if (!asks && CanRepeat(term)) turns.Add(With(ending.closes, term), ending.closed);
      if (asks) Visit(term, use);
      apart.push_back(std::move(term));
    }
    if (!asking.empty()) apart.push_back(InTurn(std::move(turns), asking, ending, node));
    const std::string alias(sql::AliasOf(node));
    if (apart.size() > 1) {
      node["children"] = std::move(apart);
    } else {
      node = std::move(apart[0]);
    }
    node["alias"] = alias;
  }

  Json InTurn(Turns turns, std::vector<Json>& terms, const Ending& ending,
              const Json& conjunction) {
    const ValueUse use = ending.filter ? ValueUse::kFilter : ValueUse::kAny;
    std::vector<Json> known;
    for (std::size_t i = 0; i + 1 < terms.size(); ++i) {
      if (!ending.by_null || !IsVerdict(terms[i])) AddStop(turns, terms[i]);
      if (!ending.filter) known.push_back(Known(terms[i]));
      Visit(terms[i], use);
      turns.Add(With(ending.closes, std::move(terms[i])), ending.closed);
    }
    Visit(terms.back(), use);
    if (known.empty()) {
      return CaseOf(std::move(turns), With("CAST(quail_x AS BOOLEAN)", std::move(terms.back())));
    }
    known.push_back(std::move(terms.back()));
    Json rest = conjunction;
    rest["children"] = std::move(known);
    rest["alias"] = "";
    return CaseOf(std::move(turns), std::move(rest));
  }

  void VisitCoalesce(Json& node) {
    Json& parts = node["children"];
    const auto last = parts.end() - 1;
    const bool in_turn =
        std::any_of(parts.begin(), last, ContainsOnDemand) &&
        std::all_of(parts.begin(), last, [this](const Json& part) { return CanRepeat(part); });
    if (!in_turn) {
      for (Json& part : parts) Visit(part, ValueUse::kAny);
      return;
    }
    Turns turns;
    for (auto part = parts.begin(); part != last; ++part) {
      AddStop(turns, *part);
      Json known = Known(*part);
      Visit(*part, ValueUse::kAny);
      turns.Add(With("quail_x IS NOT NULL", std::move(*part)), std::move(known));
    }
    Visit(*last, ValueUse::kAny);
    const std::string alias(sql::AliasOf(node));
    node = CaseOf(std::move(turns), std::move(*last));
    node["alias"] = alias;
  }

  void VisitCase(Json& node, ValueUse use) {
    Turns turns;
    for (Json& check : node["case_checks"]) {
      AddStop(turns, check["when_expr"]);
      Visit(check["when_expr"], ValueUse::kFilter);
      Visit(check["then_expr"], use);
      turns.checks.push_back(std::move(check));
    }
    node["case_checks"] = std::move(turns.checks);
    if (node.contains("else_expr") && node["else_expr"].is_object()) {
      Visit(node["else_expr"], use);
    }
  }

  /// A macro of the engine's, which would read the first argument twice. That one is read where no
  /// constant beside it makes the engine leave it out, as it does of `= NULL`.
  void VisitNullif(Json& node) {
    const auto arguments = sql::ArgumentsOf(node);
    for (const sql::FunctionArgument& argument : arguments) Visit(*argument.value, ValueUse::kAny);
    if (arguments.size() != 2 || !CanRepeat(*arguments[0].value)) return;
    Json chosen = Parsed(
        "CASE WHEN quail_x IS NULL THEN NULL WHEN quail_x = quail_y THEN NULL ELSE quail_x END");
    Json known = Known(*arguments[0].value);
    Json& checks = chosen["case_checks"];
    checks[0]["when_expr"] = With("quail_x IS NULL", std::move(*arguments[0].value));
    checks[1]["when_expr"]["left"] = known;
    checks[1]["when_expr"]["right"] = std::move(*arguments[1].value);
    chosen["else_expr"] = std::move(known);
    chosen["alias"] = std::string(sql::AliasOf(node));
    node = std::move(chosen);
  }

  /// What comes next waits for the verdicts that `part` reads, where that can be told of it.
  void AddStop(Turns& turns, const Json& part) {
    if (!ContainsOnDemand(part) || !CanRepeat(part) || !AlwaysReadsLookups(part, writer_.catalog()))
      return;
    std::string decided;
    CollectDecided(part, decided);
    turns.Add(writer_.ParseExpression(fmt::format("NOT ({})", decided)), Parsed("NULL"));
  }

  /// Whether an expression may stand in the statement twice, at one price.
  bool CanRepeat(const Json& term) const {
    const Reads reads = scope_.ReadsOf(term);
    return !reads.has_subquery && !reads.is_volatile && !sql::HasClass(term, "WINDOW");
  }

  static void CollectDecided(const Json& node, std::string& decided) {
    if (IsLookup(node)) {
      decided += (decided.empty() ? "" : " AND ") + node[kDecidedMark].get<std::string>();
      return;
    }
    if (!node.is_structured()) return;
    for (const Json& child : node) CollectDecided(child, decided);
  }

  /// The same value, of which nobody takes note that it is read.
  Json Known(Json node) const {
    if (IsLookup(node)) return writer_.ParseExpression(node[kKnownMark].get<std::string>());
    sql::ForEachChild(node, [this](Json& child) { child = Known(std::move(child)); });
    return node;
  }

  const Json& Parsed(const char* sql) {
    const auto [found, added] = parsed_.try_emplace(sql);
    if (added) found->second = writer_.ParseExpression(sql);
    return found->second;
  }

  /// `sql` with `value` in the place of quail_x.
  Json With(const char* sql, Json value) {
    Json filled = Parsed(sql);
    value["alias"] = "";
    Fill(filled, value);
    return filled;
  }
  static void Fill(Json& node, Json& value) {
    if (const auto path = sql::ColumnPath(node); path.size() == 1 && path[0] == "quail_x") {
      node = std::move(value);
      return;
    }
    sql::ForEachChild(node, [&value](Json& child) { Fill(child, value); });
  }

  Json CaseOf(Turns turns, Json rest) {
    if (turns.checks.empty()) return rest;
    Json node = Parsed("CASE WHEN TRUE THEN TRUE ELSE TRUE END");
    node["case_checks"] = std::move(turns.checks);
    node["else_expr"] = std::move(rest);
    return node;
  }

  const NameScope& scope_;
  const SqlWriter& writer_;
  std::map<std::string_view, Json> parsed_;
};

bool IsLogic(const Json& node) {
  const std::string_view type = sql::TypeOf(node);
  return type == "CONJUNCTION_AND" || type == "CONJUNCTION_OR" || type == "OPERATOR_NOT";
}

/// A call on arguments that are known, whose value is NULL until it is decided.
bool IsKnownCall(const Json& node) {
  if (!IsAiCall(node)) return false;
  return std::none_of(node.begin(), node.end(), ContainsAiCall);
}

}  // namespace

bool HoldsUndecided(const Json& condition) {
  if (!ContainsAiCall(condition) || IsKnownCall(condition)) return true;
  if (IsLogic(condition)) {
    const Json& children = condition["children"];
    return std::all_of(children.begin(), children.end(), HoldsUndecided);
  }
  const std::string_view type = sql::TypeOf(condition);
  if (sql::ClassOf(condition) != "COMPARISON" || type.find("DISTINCT") != std::string_view::npos) {
    return false;
  }
  return std::all_of(condition.begin(), condition.end(),
                     [](const Json& side) { return !ContainsAiCall(side) || IsKnownCall(side); });
}

void ReadLazily(Json& expression, ValueUse use, const NameScope& scope, const SqlWriter& writer) {
  LazyWalk(scope, writer).Visit(expression, use);
}

}  // namespace quail::plan
