#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sql/duckdb_ast.h"

namespace quail::plan {

/// `query` with every outermost AI call replaced by an expression of its type, blanks behind it, so
/// that all other bytes keep their offsets. nullopt where a call's text is too short for that, or
/// is not found.
std::optional<std::string> WithStandIns(std::string_view query, const sql::Json& tree);

/// A message of the engine about such a text, with the calls' names where it quotes a stand-in.
std::string NamedByCalls(std::string message);

/// `query` with hash(..) in place of every AI call and PROMPT(..): the engine reads their arguments
/// then. All other bytes keep their offsets.
std::string WithArgumentsAlone(std::string_view query, const sql::Json& tree);

}  // namespace quail::plan
