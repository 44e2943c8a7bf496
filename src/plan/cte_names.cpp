#include "plan/cte_names.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

/// A table of FROM, and the query of WITH that it means.
struct CteRead {
  Json* table = nullptr;
  const Json* query = nullptr;
};

std::string FreeName(std::set<std::string>& taken) {
  for (std::size_t i = 0;; ++i) {
    std::string name = fmt::format("quail_with{}", i);
    if (taken.insert(name).second) return name;
  }
}

void Rename(Json& table, const std::string& name) {
  if (sql::AliasOf(table).empty()) table["alias"] = table["table_name"];
  sql::SetTableName(table, {"", "", name});
}

/// Whether a table, or DESCRIBE, names it outside of `own`.
bool IsNamed(const std::string& name, const Json& node, const Json* own) {
  if (&node == own) return false;
  if (sql::SameWord(sql::TextMember(node, "table_name"), name)) return true;
  return node.is_structured() &&
         std::ranges::any_of(node, [&](const Json& child) { return IsNamed(name, child, own); });
}

/// Functions that have names or queries of tables in texts.
bool ReadsByText(const Json& node) {
  const std::string function = sql::FunctionName(node);
  return function == "query" || function == "query_table";
}

/// Whether there was one at or below `node` to leave out.
bool DropUnread(const Json& tree, Json& node, const SourceText& source) {
  const std::vector<sql::CteEntry> ctes = sql::CtesOf(node);
  for (std::size_t i = 0; i < ctes.size(); ++i) {
    if (IsNamed(ctes[i].name, tree, ctes[i].query)) continue;
    CheckAiCalls(*ctes[i].query, source);
    node["cte_map"]["map"].erase(i);
    return true;
  }
  bool dropped = false;
  sql::ForEachChild(node,
                    [&](Json& child) { dropped = dropped || DropUnread(tree, child, source); });
  return dropped;
}

}  // namespace

void DropUnreadCtes(Json& tree, const SourceText& source) {
  if (sql::AnyNode(tree, ReadsByText)) return;
  while (DropUnread(tree, tree, source)) {
  }
}

void NameCtesApart(Json& tree) {
  std::vector<sql::CteEntry> ctes = sql::AllCtesOf(tree);
  if (ctes.empty()) return;
  std::set<std::string> taken;
  std::vector<CteRead> reads;
  sql::ForEachTable(tree, [&](Json& table, const std::vector<sql::CteEntry>& known) {
    if (const sql::CteEntry* cte = sql::FindCte(known, table)) {
      reads.push_back({&table, cte->query});
    } else if (sql::TextMember(table, "schema_name").empty()) {
      taken.insert(sql::LowerCase(sql::TextMember(table, "table_name")));
    }
  });
  for (const sql::CteEntry& cte : ctes) {
    const bool own = taken.insert(sql::LowerCase(cte.name)).second;
    if (own || sql::TypeOf(*cte.query) == "RECURSIVE_CTE_NODE") continue;
    const std::string name = FreeName(taken);
    (*cte.entry)["key"] = name;
    for (const CteRead& read : reads) {
      if (read.query == cte.query) Rename(*read.table, name);
    }
  }
}

}  // namespace quail::plan
