#pragma once

#include <cstdint>
#include <optional>

#include "plan/catalog.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Whether what is below a node may be about other rows than the node itself: an aggregate, a
/// window.
bool MayAggregate(const sql::Json& node, Catalog& catalog);

/// Whether `node`, expressions with or without AI calls, has a value for each row, and there is no
/// row more or less for it: no aggregates, windows, subqueries, and nothing like unnest.
bool IsOfEachRow(const sql::Json& node, Catalog& catalog);

/// The rows of LIMIT or OFFSET ("limit", "offset") in a LIMIT_MODIFIER, 0 where there is none;
/// nullopt where they are no constant.
std::optional<std::uint64_t> ConstantCount(const sql::Json& modifier, const char* key);

}  // namespace quail::plan
