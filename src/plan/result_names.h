#pragma once

#include <functional>

#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Gives each unaliased result of a SELECT_NODE of which `changes` is true the name that its text
/// gives, before it becomes another one. AI calls have names of their own.
void NameByText(sql::Json& select, const std::function<bool(const sql::Json&)>& changes,
                const SqlWriter& writer);

}  // namespace quail::plan
