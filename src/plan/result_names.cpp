#include "plan/result_names.h"

#include "plan/ai_call.h"

namespace quail::plan {

using sql::Json;

void NameByText(Json& select, const std::function<bool(const Json&)>& changes,
                const SqlWriter& writer) {
  for (Json& expression : select["select_list"]) {
    const bool named = !sql::AliasOf(expression).empty() || sql::ClassOf(expression) == "STAR" ||
                       IsAiCall(expression);
    if (!named && changes(expression)) expression["alias"] = writer.PrintExpression(expression);
  }
}

}  // namespace quail::plan
