#include "plan/statement_values.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "fmt/format.h"
#include "plan/result_names.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// Functions where they are no columns.
constexpr std::array<std::string_view, 11> kNames = {
    "current_timestamp", "current_date", "current_time",
    "localtimestamp",    "localtime",    "current_catalog",
    "current_schema",    "current_role", "current_user",
    "session_user",      "user"};
constexpr std::array<std::string_view, 9> kFunctions = {
    "now",          "current_timestamp",      "get_current_timestamp", "transaction_timestamp",
    "current_date", "current_localtimestamp", "current_localtime",     "get_current_time",
    "today"};

/// The key in `values_` of a node that may stand for a value; empty for all others.
std::string KeyOf(const Json& node) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1) {
    std::string name = sql::LowerCase(path[0]);
    return std::ranges::find(kNames, name) != kNames.end() ? name : "";
  }
  const std::string function = sql::FunctionName(node);
  const bool known = std::ranges::find(kFunctions, function) != kFunctions.end();
  if (!known || sql::ClassOf(node) != "FUNCTION" || !sql::TextMember(node, "schema").empty()) {
    return {};
  }
  for (const char* arguments : {"children", "arguments"}) {
    if (node.contains(arguments) && !node[arguments].empty()) return {};
  }
  return function + "()";
}

void CollectKeys(const Json& node, std::set<std::string>& keys) {
  if (std::string key = KeyOf(node); !key.empty()) keys.insert(std::move(key));
  if (!node.is_structured()) return;
  for (const Json& child : node) CollectKeys(child, keys);
}

}  // namespace

StatementValues::StatementValues(const Json& tree, Catalog& catalog, const SqlWriter& writer) {
  std::set<std::string> keys;
  CollectKeys(tree, keys);
  if (keys.empty()) return;
  std::string list;
  for (const std::string& key : keys) {
    list += fmt::format("{}CAST({} AS VARCHAR), typeof({})", list.empty() ? "" : ", ", key, key);
  }
  const std::vector<std::string> row = catalog.Row(fmt::format("SELECT {}", list));
  std::size_t cell = 0;
  for (const std::string& key : keys) {
    values_[key] = writer.ParseExpression(
        fmt::format("CAST({} AS {})", sql::QuoteString(row.at(cell)), row.at(cell + 1)));
    cell += 2;
  }
}

const Json* StatementValues::ValueOf(const Json& name) const {
  const auto found = values_.find(KeyOf(name));
  return found == values_.end() ? nullptr : &found->second;
}

void StatementValues::ReplaceCalls(Json& tree, const SqlWriter& writer) const {
  if (values_.empty()) return;
  const auto is_call = [this](const Json& node) {
    return sql::ClassOf(node) == "FUNCTION" && ValueOf(node) != nullptr;
  };
  const std::function<bool(const Json&)> has_call = [&](const Json& node) {
    if (is_call(node)) return true;
    if (!node.is_structured()) return false;
    return std::any_of(node.begin(), node.end(), has_call);
  };
  const std::function<void(Json&)> replace = [&](Json& node) {
    if (sql::TypeOf(node) == "SELECT_NODE") NameByText(node, has_call, writer);
    if (is_call(node)) {
      const std::string alias(sql::AliasOf(node));
      node = Json(*ValueOf(node));
      node["alias"] = alias;
    } else {
      sql::ForEachChild(node, replace);
    }
  };
  replace(tree);
}

}  // namespace quail::plan
