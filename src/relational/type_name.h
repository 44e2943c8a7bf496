#pragma once

#include <string>

#include "relational/duckdb_api.h"

namespace quail::relational {

/// A type as DuckDB prints it and reads it again: "VARCHAR", "DECIMAL(9,2)", "INTEGER[]", "STRUCT(a
/// INTEGER, \"b c\" DATE)".
std::string TypeName(const DuckDbApi& api, duckdb_logical_type type);

}  // namespace quail::relational
