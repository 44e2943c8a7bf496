#pragma once

#include "plan/catalog.h"
#include "plan/source_text.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Of queries in FROM, and of WITH where one FROM reads them, whose AI calls are asked as they
/// stand leaves what the query around them reads: a call that gives a column which nobody reads
/// becomes NULL, and a condition of WHERE about other columns is met inside, too, so that the calls
/// are about the rows that meet it.
void NarrowFromQueries(sql::Json& tree, Catalog& catalog, const SqlWriter& writer,
                       const SourceText& source);

}  // namespace quail::plan
