#include "plan/row_values.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "plan/ai_call.h"

namespace quail::plan {

namespace {

using sql::Json;

/// Of those that the engine's list does not tell: macros, and the session's own.
constexpr std::array<std::string_view, 5> kScalars = {"nullif", "prompt", "quail_verdict",
                                                      "quail_probability", "quail_tokens"};

}  // namespace

bool MayAggregate(const Json& node, Catalog& catalog) {
  const std::string_view kind = sql::ClassOf(node);
  if (kind == "WINDOW") return true;
  if (kind != "FUNCTION" || node.value("is_operator", false) || IsAiCall(node)) return false;
  const std::string name = sql::FunctionName(node);
  return std::ranges::find(kScalars, name) == kScalars.end() && !catalog.IsScalar(name);
}

bool IsOfEachRow(const Json& node, Catalog& catalog) {
  if (sql::ClassOf(node) == "SUBQUERY" || MayAggregate(node, catalog)) return false;
  if (!node.is_structured()) return true;
  return std::ranges::all_of(node, [&](const Json& child) { return IsOfEachRow(child, catalog); });
}

std::optional<std::uint64_t> ConstantCount(const Json& modifier, const char* key) {
  if (sql::IsAbsent(modifier, key)) return 0;
  const auto constant = sql::ConstantOf(modifier[key]);
  if (!constant || constant->kind != sql::ConstantKind::kNumber) return std::nullopt;
  if (constant->number < 0 || constant->number > 1e15) return std::nullopt;
  const auto count = static_cast<std::uint64_t>(constant->number);
  return static_cast<double>(count) == constant->number ? std::optional(count) : std::nullopt;
}

}  // namespace quail::plan
