#pragma once

#include "plan/catalog.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// DuckDB reads `x.f(y)` as the function f of a schema x, and only its binder turns it into f(x, y)
/// where x has no such function. Does the same in a tree, so that x is seen as the column that it
/// is; results keep their names.
void SpellMethodCalls(sql::Json& tree, Catalog& catalog, const SqlWriter& writer);

}  // namespace quail::plan
