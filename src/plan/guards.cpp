#include "plan/guards.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace quail::plan {

namespace {

using sql::Json;

bool Contains(const Json& node, const char* mark) {
  if (node.is_object() && node.contains(mark)) return true;
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(),
                     [mark](const Json& child) { return Contains(child, mark); });
}

class GuardWalk {
 public:
  GuardWalk(const NameScope& scope, const SqlWriter& writer, bool several_sets)
      : scope_(scope), writer_(writer), several_sets_(several_sets) {}

  void Visit(const Json& node, ValueUse use) {
    if (!ContainsLookup(node) || sql::IsQueryNode(node)) return;
    if (node.contains(kCallMark)) {
      calls_.push_back({CallId(node[kCallMark].get<std::uint32_t>()),
                        fmt::format("{}", fmt::join(guards_, " AND ")), in_case_});
      return;
    }
    const std::string_view type = sql::TypeOf(node);
    const bool filter = use == ValueUse::kFilter;
    if (type == "CONJUNCTION_AND") {
      return VisitTerms(node["children"], filter ? "" : " IS NOT FALSE", use);
    }
    if (type == "CONJUNCTION_OR") return VisitTerms(node["children"], " IS NOT TRUE", use);
    if (type == "OPERATOR_COALESCE") return VisitCoalesce(node["children"]);
    if (sql::ClassOf(node) == "CASE") return VisitCase(node, use);
    std::vector<std::string> around;
    const bool other_rows = several_sets_ ? MayAggregate(node) : sql::ClassOf(node) == "WINDOW";
    if (other_rows) around.swap(guards_);
    for (const Json& child : node) {
      if (child.is_structured()) VisitAny(child);
    }
    if (other_rows) guards_.swap(around);
  }

  std::vector<GuardedCall> Take() { return std::move(calls_); }

 private:
  void VisitAny(const Json& node) {
    if (node.is_object()) return Visit(node, ValueUse::kAny);
    for (const Json& child : node) {
      if (child.is_structured()) VisitAny(child);
    }
  }

  /// Terms in turn, those without calls first, each under what the ones before it leave open.
  void VisitTerms(const Json& terms, const char* open, ValueUse use) {
    const std::size_t depth = guards_.size();
    for (const Json& term : terms) {
      if (!ContainsLookup(term)) Push(term, open);
    }
    for (const Json& term : terms) {
      if (!ContainsLookup(term)) continue;
      Visit(term, use);
      Push(term, open);
    }
    guards_.resize(depth);
  }

  void VisitCoalesce(const Json& arguments) {
    const std::size_t depth = guards_.size();
    for (const Json& argument : arguments) {
      Visit(argument, ValueUse::kAny);
      Push(argument, " IS NULL");
    }
    guards_.resize(depth);
  }

  void VisitCase(const Json& node, ValueUse use) {
    const std::size_t depth = guards_.size();
    const bool has_else = node.contains("else_expr") && node["else_expr"].is_object();
    const auto other = has_else ? sql::ConstantOf(node["else_expr"]) : std::nullopt;
    const bool tells = has_else && !(other && other->kind == sql::ConstantKind::kNull);
    for (const Json& check : node["case_checks"]) {
      const bool outer = std::exchange(in_case_, tells);
      Visit(check["when_expr"], ValueUse::kFilter);
      in_case_ = outer;
      const std::size_t before = guards_.size();
      Push(check["when_expr"], "");
      Visit(check["then_expr"], use);
      guards_.resize(before);
      Push(check["when_expr"], " IS NOT TRUE");
    }
    if (has_else) Visit(node["else_expr"], use);
    guards_.resize(depth);
  }

  void Push(const Json& term, const char* open) {
    const Reads reads = scope_.ReadsOf(term);
    if (reads.outside || reads.has_subquery || reads.is_volatile || reads.aggregates) return;
    if (ContainsOnDemand(term)) return;
    guards_.push_back(fmt::format("(({}){})", writer_.PrintExpression(term), open));
  }

  const NameScope& scope_;
  const SqlWriter& writer_;
  bool several_sets_;
  std::vector<std::string> guards_;
  bool in_case_ = false;
  std::vector<GuardedCall> calls_;
};

}  // namespace

bool ContainsLookup(const Json& node) { return Contains(node, kCallMark); }

bool MayAggregate(const Json& node) {
  if (sql::ClassOf(node) == "WINDOW") return true;
  const std::string function = sql::FunctionName(node);
  return !function.empty() && !node.value("is_operator", false) && function != "struct_extract";
}

bool ContainsOnDemand(const Json& node) { return Contains(node, kOnDemandMark); }

std::vector<GuardedCall> GuardedCallsOf(const Json& expression, ValueUse use,
                                        const NameScope& scope, const SqlWriter& writer,
                                        bool several_sets) {
  GuardWalk walk(scope, writer, several_sets);
  walk.Visit(expression, use);
  return walk.Take();
}

}  // namespace quail::plan
