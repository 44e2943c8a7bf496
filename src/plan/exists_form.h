#pragma once

#include <vector>

#include "plan/bind_state.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Rewrites what a query block asks of other rows as EXISTS, which needs no more than one row of
/// them, where that gives the same rows:
///
///   x IN (SELECT e FROM .. WHERE c)      EXISTS (.. WHERE c AND e = x)
///   x NOT IN (..)                        NOT EXISTS (.. WHERE c AND e = x), and no row with c at
///   all
///                                        where e or x is NULL
///   a SEMI JOIN b ON c, ANTI JOIN        [NOT] EXISTS (SELECT 1 FROM b WHERE c)
///
/// IN in WHERE, under AND and OR, where FALSE and NULL are the same; x a column; the types of x and
/// e equal, or both integers. SEMI and ANTI as the last join. Only where c has AI calls of its own.
void UseExists(BindState& state, sql::Json& select, const std::vector<VisibleCte>& ctes);

}  // namespace quail::plan
