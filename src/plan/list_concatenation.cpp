#include "plan/list_concatenation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plan/ai_call.h"
#include "plan/prompt_form.h"

namespace quail::plan {

namespace {

using sql::Json;

void AddParts(Json& node, std::vector<const Json*>& parts) {
  if (!IsConcatenation(node)) return parts.push_back(&node);
  for (const auto& argument : sql::ArgumentsOf(node)) AddParts(*argument.value, parts);
}

}  // namespace

void CastListConcatenations(Json& call, const SqlWriter& writer,
                            const std::function<bool(const Json&)>& is_list) {
  sql::ForEachChild(call, [&](Json& child) {
    if (IsAiCall(child) || sql::IsQueryNode(child)) return;
    if (!IsConcatenation(child)) return CastListConcatenations(child, writer, is_list);
    std::vector<const Json*> parts;
    AddParts(child, parts);
    // The engine makes no list of a list and a constant.
    const auto constant = [](const Json* part) { return sql::ConstantOf(*part).has_value(); };
    if (std::ranges::any_of(parts, constant)) return;
    if (!std::ranges::any_of(parts, [&](const Json* part) { return is_list(*part); })) return;
    Json text = writer.ParseExpression("CAST(t AS VARCHAR)");
    text["child"] = std::move(child);
    child = std::move(text);
  });
}

}  // namespace quail::plan
