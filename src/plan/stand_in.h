#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "quail/error.h"
#include "sql/duckdb_ast.h"
#include "sql/source_map.h"

namespace quail::plan {

/// A query whose AI calls are expressions of their types, for the engine to bind.
struct StandInQuery {
  std::string sql;
  sql::SourceMap map;  ///< from `sql` to the query that it was made of

  /// An error of the engine about `sql`, its place moved into the query.
  Error Moved(const Error& error) const;
};

/// Whether stand-ins keep the arguments of the calls for the engine to bind, too.
enum class StandInArguments { kKept, kDropped };

/// `query` with an expression of its type for every AI call; nullopt where a call's text is not
/// found, or a call of the text not in `tree`.
std::optional<StandInQuery> WithStandIns(std::string_view query, const sql::Json& tree,
                                         StandInArguments arguments);

}  // namespace quail::plan
