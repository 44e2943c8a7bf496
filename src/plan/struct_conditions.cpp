#include "plan/struct_conditions.h"

#include <array>
#include <string_view>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "sql/ai_function.h"

namespace quail::plan {

namespace {

using sql::Json;

constexpr std::array<std::string_view, 6> kConditions = {"where_clause", "having", "qualify",
                                                         "condition",    "filter", "when_expr"};

void RefuseStruct(const Json& condition, const SourceText& source) {
  if (!IsAiCall(condition) || !AsksForErrorDetails(condition)) return;
  throw source.At(
      condition, ErrorCode::kBind,
      fmt::format("{0} with return_error_details is a struct, no condition: {0}(..).value is one",
                  sql::FindAiFunction(sql::FunctionName(condition))->name));
}

}  // namespace

void RefuseStructConditions(const Json& tree, const SourceText& source) {
  if (!tree.is_structured()) return;
  const bool combines = sql::ClassOf(tree) == "CONJUNCTION" || sql::TypeOf(tree) == "OPERATOR_NOT";
  if (combines && tree.contains("children")) {
    for (const Json& term : tree["children"]) RefuseStruct(term, source);
  }
  for (const std::string_view key : kConditions) {
    if (tree.is_object() && tree.contains(key)) RefuseStruct(tree[key], source);
  }
  for (const Json& child : tree) RefuseStructConditions(child, source);
}

}  // namespace quail::plan
