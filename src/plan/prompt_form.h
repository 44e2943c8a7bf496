#pragma once

#include <string>
#include <vector>

#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// The canonical form of a prompt (sql.md section 1): `{n}` of the pattern stands for arguments[n];
/// other braces are doubled or text.
struct PromptForm {
  std::string pattern;
  std::vector<sql::Json> arguments;  ///< expressions
  bool drops_expressions = false;    ///< PROMPT had others, which no slot uses
};

/// `||` or CONCAT.
bool IsConcatenation(const sql::Json& node);

/// Reads PROMPT(..), a concatenation (||, CONCAT, a tuple, STRUCT), a constant or any other
/// expression. Throws Error{kBind}: a slot without an expression, a template that is no constant.
PromptForm ReadPrompt(sql::Json& expression, const SourceText& source);

}  // namespace quail::plan
