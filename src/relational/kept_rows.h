#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "relational/connection.h"
#include "relational/duckdb_session.h"

namespace quail::relational {

/// Connection::Keep.
std::uint64_t KeepRows(DuckDbSession& session, Connection& connection,
                       std::unique_ptr<ResultStream> rows, std::string_view table);

}  // namespace quail::relational
