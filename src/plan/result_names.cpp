#include "plan/result_names.h"

#include <algorithm>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "sql/ai_function.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

bool HasNamesOfColumns(const Json& expression) {
  if (sql::ClassOf(expression) == "STAR") return true;
  if (!expression.is_structured() || sql::IsQueryNode(expression)) return false;
  // *COLUMNS(..) makes arguments of its columns, not results.
  if (sql::TypeOf(expression) == "OPERATOR_UNPACK") return false;
  return std::any_of(expression.begin(), expression.end(), HasNamesOfColumns);
}

void NameByText(Json& select, const std::function<bool(const Json&)>& changes,
                const SqlWriter& writer) {
  for (Json& expression : select["select_list"]) {
    const bool named =
        !sql::AliasOf(expression).empty() || HasNamesOfColumns(expression) || IsAiCall(expression);
    if (!named && changes(expression)) expression["alias"] = writer.PrintExpression(expression);
  }
}

void NameQueriesByText(Json& node, const SqlWriter& writer) {
  const auto has_query = [](const Json& expression) {
    return sql::AnyNode(expression, [](const Json& part) { return sql::IsQueryNode(part); });
  };
  if (sql::TypeOf(node) == "SELECT_NODE") NameByText(node, has_query, writer);
  sql::ForEachChild(node, [&](Json& child) { NameQueriesByText(child, writer); });
}

std::string CallName(const Json& call, std::map<std::string, int>& used) {
  const std::string name = sql::LowerCase(sql::FindAiFunction(sql::FunctionName(call))->name);
  const int count = used[name]++;
  return count == 0 ? name : fmt::format("{}_{}", name, count);
}

}  // namespace quail::plan
