#pragma once

#include <functional>
#include <map>
#include <string>

#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Whether an item of a select list is one result a column, with its name: `*` and expressions over
/// COLUMNS(..).
bool HasNamesOfColumns(const sql::Json& expression);

/// Gives each unaliased result of a SELECT_NODE of which `changes` is true the name that its text
/// gives, before it becomes another one. AI calls have names of their own.
void NameByText(sql::Json& select, const std::function<bool(const sql::Json&)>& changes,
                const SqlWriter& writer);

/// Does so at and below `node` for results with a subquery: names in its FROM will change.
void NameQueriesByText(sql::Json& node, const SqlWriter& writer);

/// The name of an unaliased result that is an AI call: its function's. `used`: how often each has
/// been given.
std::string CallName(const sql::Json& call, std::map<std::string, int>& used);

}  // namespace quail::plan
