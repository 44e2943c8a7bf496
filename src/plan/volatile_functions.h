#pragma once

#include <set>
#include <string>
#include <string_view>

#include "plan/catalog.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Whether a function of the engine, in lower case, has another value each time that a statement
/// runs.
bool IsVolatileFunction(std::string_view function);

/// Users' macros, in lower case, that come to such a function, themselves or through other macros,
/// and those whose definition has no tree (PIVOT), so that it cannot be told.
/// The catalog is asked only where `tree` has functions by name.
std::set<std::string> VolatileMacros(const sql::Json& tree, Catalog& catalog);

/// Whether each run of the queries below `tree` gives the same rows: it has no such function or
/// macro and no SAMPLE.
bool IsRepeatable(const sql::Json& tree, const std::set<std::string>& volatile_macros);

}  // namespace quail::plan
