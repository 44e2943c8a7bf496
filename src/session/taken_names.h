#pragma once

#include <string>
#include <string_view>

#include "relational/connection.h"

namespace quail::session {

/// "table", "view" or nothing: what the relational engine has under a name without a schema.
std::string KindOfName(relational::Connection& connection, std::string_view name);

/// Whether a table or view of any schema has the name.
bool IsTaken(relational::Connection& connection, std::string_view name);

/// What the name of no table or view of any schema begins with.
std::string FreePrefix(relational::Connection& connection);

}  // namespace quail::session
