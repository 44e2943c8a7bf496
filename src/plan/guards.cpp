#include "plan/guards.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "plan/row_values.h"

namespace quail::plan {

namespace {

using sql::Json;

/// More are tested on rows that are kept.
constexpr std::size_t kMostGuards = 16;

/// The guards up to `guard` and behind `from`. nullopt: `from` is not among them.
std::optional<std::size_t> CountGuards(const Guard* guard, const Guard* from) {
  std::size_t count = 0;
  for (; guard != nullptr && guard != from; guard = guard->before.get()) ++count;
  return guard == from ? std::optional(count) : std::nullopt;
}

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
      calls_.push_back({CallId(node[kCallMark].get<std::uint32_t>()), guard_, in_case_});
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
    const auto around = guard_;
    const bool other_rows =
        several_sets_ ? MayAggregate(node, writer_.catalog()) : sql::ClassOf(node) == "WINDOW";
    if (other_rows) guard_ = nullptr;
    for (const Json& child : node) {
      if (child.is_structured()) VisitAny(child);
    }
    guard_ = around;
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
    const auto outer = guard_;
    for (const Json& term : terms) {
      if (!ContainsLookup(term)) Push(term, open);
    }
    for (const Json& term : terms) {
      if (!ContainsLookup(term)) continue;
      Visit(term, use);
      Push(term, open);
    }
    guard_ = outer;
  }

  void VisitCoalesce(const Json& arguments) {
    const auto outer = guard_;
    for (const Json& argument : arguments) {
      Visit(argument, ValueUse::kAny);
      Push(argument, " IS NULL");
    }
    guard_ = outer;
  }

  void VisitCase(const Json& node, ValueUse use) {
    const auto outer_guard = guard_;
    const bool has_else = node.contains("else_expr") && node["else_expr"].is_object();
    const auto other = has_else ? sql::ConstantOf(node["else_expr"]) : std::nullopt;
    const bool tells = has_else && !(other && other->kind == sql::ConstantKind::kNull);
    for (const Json& check : node["case_checks"]) {
      const bool outer = std::exchange(in_case_, tells);
      Visit(check["when_expr"], ValueUse::kFilter);
      in_case_ = outer;
      const auto before = guard_;
      Push(check["when_expr"], "");
      Visit(check["then_expr"], use);
      guard_ = before;
      Push(check["when_expr"], " IS NOT TRUE");
    }
    if (has_else) Visit(node["else_expr"], use);
    guard_ = outer_guard;
  }

  void Push(const Json& term, const char* open) {
    const Reads reads = scope_.ReadsOf(term);
    if (reads.outside || reads.has_subquery || reads.is_volatile || reads.aggregates) return;
    if (ContainsOnDemand(term)) return;
    guard_ = std::make_shared<const Guard>(
        Guard{fmt::format("(({}){})", writer_.PrintExpression(term), open), guard_});
  }

  const NameScope& scope_;
  const SqlWriter& writer_;
  bool several_sets_;
  std::shared_ptr<const Guard> guard_;  ///< the last of those that hold here
  bool in_case_ = false;
  std::vector<GuardedCall> calls_;
};

}  // namespace

bool ContainsLookup(const Json& node) { return Contains(node, kCallMark); }

bool ContainsOnDemand(const Json& node) { return Contains(node, kOnDemandMark); }

std::string ConditionSql(const std::shared_ptr<const Guard>& guard, const Guard* from) {
  std::vector<std::string_view> parts;
  for (const Guard* at = guard.get(); at != from; at = at->before.get()) parts.push_back(at->sql);
  std::reverse(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, " AND "));
}

bool KeptGuards::GoOn(const GuardedCall& call) {
  auto count = CountGuards(call.guard.get(), kept_);
  if (!count) {
    kept_ = nullptr;
    count = CountGuards(call.guard.get(), kept_);
  }
  return *count > kMostGuards;
}

std::vector<GuardedCall> GuardedCallsOf(const Json& expression, ValueUse use,
                                        const NameScope& scope, const SqlWriter& writer,
                                        bool several_sets) {
  GuardWalk walk(scope, writer, several_sets);
  walk.Visit(expression, use);
  return walk.Take();
}

}  // namespace quail::plan
