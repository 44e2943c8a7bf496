#pragma once

#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Renames the queries of WITH whose names mean something else elsewhere in the statement, a table
/// or another query: behind this a name alone tells what it means. What reads them keeps the name
/// as its alias. Recursive ones keep theirs.
void NameCtesApart(sql::Json& tree);

}  // namespace quail::plan
