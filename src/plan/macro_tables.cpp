#include "plan/macro_tables.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "quail/error.h"
#include "sql/lexer.h"
#include "sql/token_view.h"

namespace quail::plan {

namespace {

using sql::Json;
using Names = std::set<std::string>;  ///< in lower case

/// What a macro's text names.
struct MacroReads {
  Names tables;
  Names functions;
};

void AddFunctions(const Json& node, Names& functions) {
  const std::string function = sql::FunctionName(node);
  if (!function.empty()) functions.insert(function);
  if (!node.is_structured()) return;
  for (const Json& child : node) AddFunctions(child, functions);
}

/// Of a text that has no tree (PIVOT) all names may be either.
MacroReads ReadsOfText(const std::string& text) {
  const std::vector<sql::Token> tokens = sql::Lex(text, sql::EngineRules());
  const sql::TokenView view{text, tokens};
  MacroReads reads;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (view.NameAt(i)) reads.tables.insert(sql::LowerCase(view.Name(i)));
  }
  reads.functions = reads.tables;
  return reads;
}

MacroReads ReadsOf(const Macro& macro, Catalog& catalog) {
  MacroReads reads;
  try {
    Json tree = sql::ReadTree(catalog.Parse(macro.select_sql));
    sql::ForEachTable(tree, [&](const Json& table, const std::vector<sql::CteEntry>& known) {
      const bool qualified = !sql::TextMember(table, "schema_name").empty();
      if (qualified || sql::FindCte(known, table) != nullptr) return;
      reads.tables.insert(sql::LowerCase(sql::TextMember(table, "table_name")));
    });
    AddFunctions(tree, reads.functions);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kSyntax) throw;
    return ReadsOfText(macro.select_sql);
  }
  return reads;
}

/// Of one statement.
class MacroCheck {
 public:
  MacroCheck(const Names& ctes, Catalog& catalog, const SourceText& source)
      : ctes_(ctes), source_(source) {
    for (const Macro& macro : catalog.Macros()) {
      const auto [known, added] =
          reads_.emplace(sql::LowerCase(macro.name), ReadsOf(macro, catalog));
      if (!added) known->second.tables.merge(ReadsOf(macro, catalog).tables);
    }
  }

  void Visit(const Json& node) const {
    Names seen;
    const std::string function = sql::FunctionName(node);
    const std::string table = function.empty() ? "" : TableOf(function, seen);
    if (!table.empty()) {
      throw source_.At(
          node, ErrorCode::kUnsupported,
          fmt::format("the macro {} reads {}, which is also the name of a WITH of this "
                      "statement: not supported yet, give that another name",
                      function, table));
    }
    if (!node.is_structured()) return;
    for (const Json& child : node) Visit(child);
  }

 private:
  /// A table with the name of a WITH that a macro reads, itself or through others; empty: none.
  std::string TableOf(const std::string& macro, Names& seen) const {
    const auto known = reads_.find(macro);
    if (known == reads_.end() || !seen.insert(macro).second) return "";
    const MacroReads& reads = known->second;
    const auto table = std::ranges::find_if(
        reads.tables, [this](const std::string& name) { return ctes_.contains(name); });
    if (table != reads.tables.end()) return *table;
    for (const std::string& function : reads.functions) {
      const std::string found = TableOf(function, seen);
      if (!found.empty()) return found;
    }
    return "";
  }

  const Names& ctes_;
  const SourceText& source_;
  std::map<std::string, MacroReads> reads_;
};

}  // namespace

void RefuseMacrosOverCtes(Json& tree, Catalog& catalog, const SourceText& source) {
  Names ctes;
  for (const sql::CteEntry& cte : sql::AllCtesOf(tree)) ctes.insert(sql::LowerCase(cte.name));
  if (!ctes.empty()) MacroCheck(ctes, catalog, source).Visit(tree);
}

}  // namespace quail::plan
