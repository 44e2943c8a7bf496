#pragma once

#include <string_view>

#include "relational/connection.h"
#include "sql/statement.h"

namespace quail::session {

/// Whether the engine would make the change of an UPDATE or DELETE with AI calls, before anything
/// is asked; other statements pass. Throws the engine's Error and Error{kUnsupported} for a table
/// whose row ids cannot be named, with places in the script.
void CheckChange(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement);

}  // namespace quail::session
