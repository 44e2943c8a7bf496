#include "plan/lazy_calls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"

namespace quail::plan {

namespace {

using sql::Json;

bool IsConditional(const Json& node) {
  const std::string_view type = sql::TypeOf(node);
  return type == "CONJUNCTION_AND" || type == "CONJUNCTION_OR" || type == "OPERATOR_COALESCE" ||
         sql::ClassOf(node) == "CASE";
}

/// Whether a lookup on demand stands in a part of `node` that is not always evaluated.
bool HasConditionalLookup(const Json& node) {
  if (!node.is_structured() || !ContainsOnDemand(node)) return false;
  if (node.is_object() && node.contains(kOnDemandMark)) return false;
  if (node.is_object() && IsConditional(node)) return true;
  return std::any_of(node.begin(), node.end(),
                     [](const Json& child) { return HasConditionalLookup(child); });
}

class LazyWalk {
 public:
  LazyWalk(const NameScope& scope, const SqlWriter& writer) : scope_(scope), writer_(writer) {}

  void Visit(Json& node, ValueUse use) {
    if (!ContainsOnDemand(node) || sql::IsQueryNode(node)) return;
    if (node.contains(kOnDemandMark)) return Guard(node);
    const std::string_view type = sql::TypeOf(node);
    const bool filter = use == ValueUse::kFilter;
    if (type == "CONJUNCTION_AND") {
      return VisitTerms(node["children"], filter ? "" : " IS NOT FALSE", use);
    }
    if (type == "CONJUNCTION_OR") return VisitTerms(node["children"], " IS NOT TRUE", use);
    if (type == "OPERATOR_COALESCE") {
      return VisitInTurn(node["children"], " IS NULL", ValueUse::kAny);
    }
    if (sql::ClassOf(node) == "CASE") return VisitCase(node, use);
    // What stands around an aggregate is about groups, inside it is about rows.
    std::vector<std::string> around;
    if (MayAggregate(node)) around.swap(guards_);
    sql::ForEachChild(node, [this](Json& child) { Visit(child, ValueUse::kAny); });
    if (MayAggregate(node)) guards_.swap(around);
  }

 private:
  /// Terms without calls first, as the engine may evaluate them in any order.
  void VisitTerms(Json& terms, const char* open, ValueUse use) {
    const std::size_t depth = guards_.size();
    for (const Json& term : terms) {
      if (!ContainsOnDemand(term)) Push(term, open);
    }
    for (Json& term : terms) {
      if (!ContainsOnDemand(term)) continue;
      auto guard = ConditionOf(term, open);
      Visit(term, use);
      if (!guard.empty()) guards_.push_back(std::move(guard));
    }
    guards_.resize(depth);
  }

  void VisitInTurn(Json& parts, const char* open, ValueUse use) {
    const std::size_t depth = guards_.size();
    for (Json& part : parts) {
      auto guard = ConditionOf(part, open);
      Visit(part, use);
      if (!guard.empty()) guards_.push_back(std::move(guard));
    }
    guards_.resize(depth);
  }

  void VisitCase(Json& node, ValueUse use) {
    const std::size_t depth = guards_.size();
    for (Json& check : node["case_checks"]) {
      auto taken = ConditionOf(check["when_expr"], "");
      auto passed = ConditionOf(check["when_expr"], " IS NOT TRUE");
      Visit(check["when_expr"], ValueUse::kFilter);
      const std::size_t before = guards_.size();
      if (!taken.empty()) guards_.push_back(std::move(taken));
      Visit(check["then_expr"], use);
      guards_.resize(before);
      if (!passed.empty()) guards_.push_back(std::move(passed));
    }
    if (node.contains("else_expr") && node["else_expr"].is_object()) {
      Visit(node["else_expr"], use);
    }
    guards_.resize(depth);
  }

  void Push(const Json& term, const char* open) {
    if (auto condition = ConditionOf(term, open); !condition.empty()) {
      guards_.push_back(std::move(condition));
    }
  }

  /// "what is before is decided, and leaves open what follows"; empty where that is not to be told.
  std::string ConditionOf(const Json& term, const char* open) const {
    const Reads reads = scope_.ReadsOf(term);
    if (reads.has_subquery || reads.is_volatile || HasWindow(term)) return {};
    if (HasConditionalLookup(term)) return {};
    Json known = term;
    std::string decided;
    ReplaceByKnown(known, decided);
    return fmt::format("{}(({}){})", decided, writer_.PrintExpression(known), open);
  }

  static bool HasWindow(const Json& node) {
    if (sql::ClassOf(node) == "WINDOW") return true;
    return node.is_structured() && std::any_of(node.begin(), node.end(),
                                               [](const Json& child) { return HasWindow(child); });
  }

  void ReplaceByKnown(Json& node, std::string& decided) const {
    if (node.contains(kOnDemandMark)) {
      decided += node[kDecidedMark].get<std::string>() + " AND ";
      node = writer_.ParseExpression(node[kKnownMark].get<std::string>());
      return;
    }
    sql::ForEachChild(node, [&](Json& child) { ReplaceByKnown(child, decided); });
  }

  /// In turn, not by AND: a condition asks for the verdicts that it waits for only where those
  /// before it hold.
  void Guard(Json& lookup) const {
    if (guards_.empty()) return;
    const std::string alias(sql::AliasOf(lookup));
    lookup["alias"] = "";
    std::string closed;
    for (const std::string& guard : guards_) {
      closed += fmt::format(" WHEN ({}) IS NOT TRUE THEN NULL", guard);
    }
    Json guarded = writer_.ParseExpression(fmt::format("CASE{} ELSE quail_lookup END", closed));
    guarded["else_expr"] = std::move(lookup);
    guarded["alias"] = alias;
    lookup = std::move(guarded);
  }

  const NameScope& scope_;
  const SqlWriter& writer_;
  std::vector<std::string> guards_;
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
