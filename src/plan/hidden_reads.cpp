#include "plan/hidden_reads.h"

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

/// What a function names.
struct TextReads {
  Names tables;
  Names functions;
  bool anything = false;  ///< its text is not written out
};

/// Of a text that has no tree all names may be either.
void AddNames(const std::string& text, TextReads& reads) {
  const std::vector<sql::Token> tokens = sql::Lex(text, sql::EngineRules());
  const sql::TokenView view{text, tokens};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!view.NameAt(i)) continue;
    reads.tables.insert(sql::LowerCase(view.Name(i)));
    reads.functions.insert(sql::LowerCase(view.Name(i)));
  }
}

/// The argument of query or query_table: a text or a list of texts.
void AddArgument(const Json& argument, TextReads& reads) {
  const auto constant = sql::ConstantOf(argument);
  if (constant && constant->kind == sql::ConstantKind::kText)
    return AddNames(constant->text, reads);
  if (sql::FunctionName(argument) != "list_value") {
    reads.anything = true;
    return;
  }
  for (const Json& text : argument["children"]) AddArgument(text, reads);
}

void AddFunctions(const Json& node, TextReads& reads) {
  const std::string function = sql::FunctionName(node);
  if (!function.empty()) reads.functions.insert(function);
  const bool by_text = function == "query" || function == "query_table";
  if (by_text && !node["children"].empty()) AddArgument(node["children"][0], reads);
  if (!node.is_structured()) return;
  for (const Json& child : node) AddFunctions(child, reads);
}

TextReads ReadsOf(const Macro& macro, Catalog& catalog) {
  TextReads reads;
  try {
    Json tree = sql::ReadTree(catalog.Parse(macro.select_sql));
    sql::ForEachTable(tree, [&](const Json& table, const std::vector<sql::CteEntry>& known) {
      const bool qualified = !sql::TextMember(table, "schema_name").empty();
      if (qualified || sql::FindCte(known, table) != nullptr) return;
      reads.tables.insert(sql::LowerCase(sql::TextMember(table, "table_name")));
    });
    AddFunctions(tree, reads);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported && error.code() != ErrorCode::kSyntax) throw;
    AddNames(macro.select_sql, reads);
  }
  return reads;
}

/// Of one statement.
class HiddenReads {
 public:
  HiddenReads(const Names& ctes, Catalog& catalog, const SourceText& source)
      : ctes_(ctes), catalog_(catalog), source_(source) {
    for (const Macro& macro : catalog.Macros()) {
      macros_.emplace(sql::LowerCase(macro.name), macro);
    }
  }

  void Refuse(const Json& node) const {
    const std::string function = sql::FunctionName(node);
    if (!function.empty()) RefuseFunction(node, function);
    if (!node.is_structured()) return;
    for (const Json& child : node) Refuse(child);
  }

 private:
  void RefuseFunction(const Json& node, const std::string& function) const {
    TextReads reads;
    Names seen;
    const bool by_text = function == "query" || function == "query_table";
    if (by_text) AddArgument(node["children"].empty() ? Json() : node["children"][0], reads);
    AddMacro(function, seen, reads);
    for (const std::string& called : Names(reads.functions)) AddMacro(called, seen, reads);
    const auto table = std::ranges::find_if(
        reads.tables, [this](const std::string& name) { return ctes_.contains(name); });
    if (table != reads.tables.end()) {
      throw source_.At(node, ErrorCode::kUnsupported,
                       fmt::format("{} reads {}, which is also the name of a WITH of this "
                                   "statement: not supported yet, give that another name",
                                   function, *table));
    }
    if (reads.anything) {
      throw source_.At(node, ErrorCode::kUnsupported,
                       fmt::format("{} beside a WITH and AI calls is supported with a text that is "
                                   "written out only",
                                   function));
    }
  }

  /// What a macro reads, itself or through others; nothing for other functions.
  void AddMacro(const std::string& function, Names& seen, TextReads& reads) const {
    const auto [first, last] = macros_.equal_range(function);
    if (first == last || !seen.insert(function).second) return;
    for (auto form = first; form != last; ++form) {
      const TextReads macro = ReadsOf(form->second, catalog_);
      reads.tables.insert(macro.tables.begin(), macro.tables.end());
      reads.anything |= macro.anything;
      for (const std::string& called : macro.functions) AddMacro(called, seen, reads);
    }
  }

  const Names& ctes_;
  Catalog& catalog_;
  const SourceText& source_;
  std::multimap<std::string, Macro> macros_;  ///< by name, in lower case
};

}  // namespace

void RefuseHiddenCteReads(Json& tree, Catalog& catalog, const SourceText& source) {
  Names ctes;
  for (const sql::CteEntry& cte : sql::AllCtesOf(tree)) ctes.insert(sql::LowerCase(cte.name));
  if (!ctes.empty()) HiddenReads(ctes, catalog, source).Refuse(tree);
}

}  // namespace quail::plan
