#pragma once

#include <functional>

#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Of lists `||` and CONCAT make one list: in the prompt of `call` such a concatenation becomes its
/// text. What `is_list` does not know stays: of texts each part is an argument of its own.
void CastListConcatenations(sql::Json& call, const SqlWriter& writer,
                            const std::function<bool(const sql::Json&)>& is_list);

}  // namespace quail::plan
