#include "plan/volatile_functions.h"

#include <algorithm>
#include <array>
#include <map>

#include "plan/ai_call.h"
#include "quail/error.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;
using Names = std::set<std::string>;

constexpr std::array<std::string_view, 22> kVolatileFunctions = {
    "random", "setseed", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval",
    "write_log", "stats",
    // The same within one run of a statement only.
    "now", "current_timestamp", "get_current_timestamp", "transaction_timestamp",
    "current_localtimestamp", "current_localtime", "get_current_time", "current_query_id",
    "current_transaction_id",
    // Functions where they are no columns.
    "current_time", "localtime", "localtimestamp"};

void CollectFunctions(const Json& node, Names& functions) {
  const std::string function = sql::FunctionName(node);
  if (!function.empty() && !IsAiCall(node)) functions.insert(function);
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1 && IsVolatileFunction(sql::LowerCase(path[0]))) {
    functions.insert(sql::LowerCase(path[0]));
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) CollectFunctions(child, functions);
}

bool HasSample(const Json& node) {
  return sql::AnyNode(node, [](const Json& inner) { return !sql::IsAbsent(inner, "sample"); });
}

}  // namespace

bool IsVolatileFunction(std::string_view function) {
  return std::ranges::find(kVolatileFunctions, function) != kVolatileFunctions.end();
}

std::set<std::string> VolatileMacros(const Json& tree, Catalog& catalog) {
  Names used;
  CollectFunctions(tree, used);
  Names macros;
  if (used.empty()) return macros;
  std::map<std::string, Names> reads;
  for (const Macro& macro : catalog.Macros()) {
    const std::string name = sql::LowerCase(macro.name);
    try {
      CollectFunctions(sql::ReadTree(catalog.Parse(macro.select_sql)), reads[name]);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kSyntax) throw;
      macros.insert(name);
    }
  }
  const auto is_volatile = [&macros](const std::string& function) {
    return IsVolatileFunction(function) || macros.contains(function);
  };
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [macro, functions] : reads) {
      if (std::ranges::any_of(functions, is_volatile)) grew |= macros.insert(macro).second;
    }
  }
  return macros;
}

bool IsRepeatable(const Json& tree, const std::set<std::string>& volatile_macros) {
  Names functions;
  CollectFunctions(tree, functions);
  return !HasSample(tree) && std::ranges::none_of(functions, [&](const std::string& function) {
    return IsVolatileFunction(function) || volatile_macros.contains(function);
  });
}

}  // namespace quail::plan
