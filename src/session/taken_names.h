#pragma once

#include <span>
#include <string>
#include <string_view>

#include "relational/connection.h"

namespace quail::session {

/// "table", "view" or nothing: what the relational engine has where CREATE TABLE would make one of
/// that name: in `path` (a schema or database, or a database and a schema), else among the
/// temporary ones or in the current schema.
std::string KindAt(relational::Connection& connection, std::span<const std::string> path,
                   bool temporary, std::string_view name);

/// Whether a table or view of any schema has the name.
bool IsTaken(relational::Connection& connection, std::string_view name);

/// What the name of no table or view of any schema begins with.
std::string FreePrefix(relational::Connection& connection);

}  // namespace quail::session
