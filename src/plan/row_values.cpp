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

bool IsOfEachRow(const Json& node, Catalog& catalog) {
  if (sql::ClassOf(node) == "WINDOW" || sql::ClassOf(node) == "SUBQUERY") return false;
  const bool is_operator = node.is_object() && node.value("is_operator", false);
  if (sql::ClassOf(node) == "FUNCTION" && !is_operator && !IsAiCall(node)) {
    const std::string name = sql::FunctionName(node);
    if (std::ranges::find(kScalars, name) == kScalars.end() && !catalog.IsScalar(name)) {
      return false;
    }
  }
  if (!node.is_structured()) return true;
  return std::ranges::all_of(node, [&](const Json& child) { return IsOfEachRow(child, catalog); });
}

}  // namespace quail::plan
