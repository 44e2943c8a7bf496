#pragma once

#include <string_view>

#include "relational/connection.h"
#include "relational/duckdb_session.h"

namespace quail::relational {

/// Makes a temporary table of a stream's rows, in place of an earlier temporary table of that name,
/// which stays as it was when anything fails. Takes the stream over. Throws Error{kCorrupt} where
/// the Arrow data contradicts itself or a text is not valid UTF-8, Error{kUnsupported} for a type
/// without import, Error{kIo} for an error of the stream.
void LoadArrowTable(DuckDbSession& session, Connection& connection, std::string_view table,
                    ArrowArrayStream* stream);

}  // namespace quail::relational
