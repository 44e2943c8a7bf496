#pragma once

#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Throws Error{kBind} at a call with return_error_details that stands for a condition (WHERE, ON,
/// HAVING, QUALIFY, FILTER, WHEN, under AND, OR and NOT): its value is a struct, which the engine
/// would say of the first row only, when the calls are paid for.
void RefuseStructConditions(const sql::Json& tree, const SourceText& source);

}  // namespace quail::plan
