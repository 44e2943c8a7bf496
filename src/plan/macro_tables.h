#pragma once

#include "plan/catalog.h"
#include "plan/source_text.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// The engine puts a macro's text in the place of its name, where a table that it reads may be a
/// query of the statement's WITH: refused, for queries of WITH are moved, renamed and left out by
/// what the statement itself names. Throws Error{kUnsupported} at the macro.
void RefuseMacrosOverCtes(sql::Json& tree, Catalog& catalog, const SourceText& source);

}  // namespace quail::plan
