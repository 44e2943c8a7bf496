#pragma once

#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Renames the queries of WITH whose names mean something else elsewhere in the statement, a table
/// or another query: behind this a name alone tells what it means. What reads them keeps the name
/// as its alias. Recursive ones keep theirs.
void NameCtesApart(sql::Json& tree);

/// Leaves out the queries of WITH that nothing reads, which the engine does not look at either.
/// What is wrong with their calls is told: throws Error{kBind | kUnsupported}. REQUIRES: names tell
/// them apart.
void DropUnreadCtes(sql::Json& tree, const SourceText& source);

}  // namespace quail::plan
