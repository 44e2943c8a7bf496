#pragma once

#include <string_view>

#include "columnar/batch.h"
#include "quail/error.h"
#include "relational/connection.h"
#include "sql/statement.h"

namespace quail::session {

/// Whether the engine would make the change of an UPDATE or DELETE with AI calls, before anything
/// is asked; other statements pass. Throws the engine's Error and Error{kUnsupported} for a table
/// whose row ids cannot be named, with places in the script.
void CheckChange(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement);

/// Whether the engine would take `rows` for what CREATE TABLE .. AS, INSERT .. SELECT or COPY .. TO
/// makes of them, before anything is asked; other statements pass. False where there is nothing to
/// do: IF NOT EXISTS of a table that is there. Throws the engine's Error, Error{kBind} for a name
/// that is taken and Error{kIo} for a file that cannot be written, with places in the script.
bool CheckEffect(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement, const columnar::Schema& rows);

/// What the engine says of making the change of an UPDATE, without the columns that new values are
/// kept in.
Error OfChange(const Error& error);

}  // namespace quail::session
