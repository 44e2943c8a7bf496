#pragma once

#include <string>
#include <string_view>

#include "relational/connection.h"

namespace quail::relational {

/// DuckDB's syntax tree of one or more SELECT statements as JSON (json_serialize_sql; its shape
/// differs between DuckDB 1.5 and 2.0). Throws Error{kSyntax} with the place in `sql` where
/// DuckDB's parser names one, Error{kUnsupported} for statements that have no such JSON (everything
/// but SELECT).
std::string SerializeSql(Connection& connection, std::string_view sql);

/// The SQL of such a tree (json_deserialize_sql). Throws Error{kQuery} where DuckDB cannot read the
/// tree.
std::string DeserializeSql(Connection& connection, std::string_view json);

}  // namespace quail::relational
