#include "plan/cte_names.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
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

}  // namespace

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
