#pragma once

#include "plan/guards.h"
#include "plan/name_scope.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Members of a lookup of a call on demand, as SQL: the value of its verdict where nobody takes
/// note that it is read, and whether it is decided.
inline constexpr const char* kKnownMark = "quail_known";
inline constexpr const char* kDecidedMark = "quail_decided";

/// Puts each lookup of a call on demand in `expression` behind the condition under which its value
/// can matter (as GuardedCallsOf): the engine would read the verdicts of all terms of an AND and of
/// an OR, and what it reads undecided is asked. Terms before it that are not decided yet keep it
/// unread. A condition whose own lookups are conditional, or that has subqueries, windows or random
/// values, is left out: more is asked then, never less. Nested queries are left as they are.
void ReadLazily(sql::Json& expression, ValueUse use, const NameScope& scope,
                const SqlWriter& writer);

/// Whether a condition is TRUE only if it stays so whatever its undecided calls, which read as NULL
/// until then, turn out to be: AND, OR and NOT of calls and of comparisons with one. IS NULL and
/// CASE take an undecided verdict for NULL.
bool HoldsUndecided(const sql::Json& condition);

}  // namespace quail::plan
