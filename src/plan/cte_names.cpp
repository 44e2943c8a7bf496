#include "plan/cte_names.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

/// Adds what tables of FROM, and DESCRIBE, name at or below a node, outside of its queries of WITH.
void AddNamed(const Json& node, std::vector<std::string>& names) {
  const std::string_view name = sql::TextMember(node, "table_name");
  if (!name.empty()) names.push_back(sql::LowerCase(name));
  if (!node.is_structured()) return;
  for (const auto& [key, child] : node.items()) {
    if (key != "cte_map") AddNamed(child, names);
  }
}

/// By name, in lower case.
using CteQueries = std::multimap<std::string, const Json*>;

/// Takes out those that the statement reads, by itself or through another that it reads.
void TakeRead(const Json& tree, CteQueries& ctes) {
  std::vector<std::string> names;
  AddNamed(tree, names);
  while (!names.empty()) {
    const auto [first, last] = ctes.equal_range(std::exchange(names.back(), ""));
    names.pop_back();
    for (auto read = first; read != last; ++read) AddNamed(*read->second, names);
    ctes.erase(first, last);
  }
}

void Drop(Json& node, const CteQueries& unread, const SourceText& source) {
  std::size_t kept = 0;
  for (const sql::CteEntry& cte : sql::CtesOf(node)) {
    if (!unread.contains(sql::LowerCase(cte.name))) {
      ++kept;
      continue;
    }
    Json& entries = node["cte_map"]["map"];
    CheckAiCalls(entries[kept], source);
    entries.erase(kept);
  }
  sql::ForEachChild(node, [&](Json& child) { Drop(child, unread, source); });
}

}  // namespace

void DropUnreadCtes(Json& tree, const SourceText& source) {
  CteQueries unread;
  for (const sql::CteEntry& cte : sql::AllCtesOf(tree)) {
    unread.emplace(sql::LowerCase(cte.name), cte.query);
  }
  if (unread.empty()) return;
  TakeRead(tree, unread);
  if (!unread.empty()) Drop(tree, unread, source);
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
