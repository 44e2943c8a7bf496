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

/// Makes `expression` read each lookup of a call on demand only where its value can matter (as
/// GuardedCallsOf): AND, OR and COALESCE become a CASE whose parts are evaluated in turn, each of
/// which stands in it as often however many there are. A part with verdicts that are not decided
/// yet keeps what follows it unread; where its own lookups are conditional or inside of aggregates,
/// or it has subqueries, windows or random values, that cannot always be told: more is asked then,
/// never less. Nested queries are left as they are.
void ReadLazily(sql::Json& expression, ValueUse use, const NameScope& scope,
                const SqlWriter& writer);

/// Whether a condition is TRUE only if it stays so whatever its undecided calls, which read as NULL
/// until then, turn out to be: AND, OR and NOT of calls and of comparisons with one. IS NULL and
/// CASE take an undecided verdict for NULL.
bool HoldsUndecided(const sql::Json& condition);

}  // namespace quail::plan
