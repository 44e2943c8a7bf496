#pragma once

#include <string>
#include <vector>

#include "plan/catalog.h"
#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// A text constant that stands for a value of its operand's type, to which the engine casts it
/// while the statement runs.
struct ComparedConstant {
  const sql::Json* constant = nullptr;
  const sql::Json* other = nullptr;
  std::string text;
};

/// Those of comparisons, BETWEEN and lists of IN at or below `tree`.
std::vector<ComparedConstant> ComparedConstants(const sql::Json& tree);

/// Throws Error{kBind} at a constant that no result of the AI call beside it can be: told before
/// anything is asked.
void RefuseImpossibleConstants(const sql::Json& tree, const SourceText& source, Catalog& catalog);

}  // namespace quail::plan
