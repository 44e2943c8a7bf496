#pragma once

#include "plan/catalog.h"
#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// What a statement reads without naming it, through macros, query(..) and query_table(..), the
/// engine looks for among the statement's WITH first. Queries of WITH are moved, renamed and left
/// out by what the statement itself names: refused where such a read may mean one. Throws
/// Error{kUnsupported} at the function.
void RefuseHiddenCteReads(sql::Json& tree, Catalog& catalog, const SourceText& source);

}  // namespace quail::plan
