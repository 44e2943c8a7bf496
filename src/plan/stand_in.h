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

}  // namespace quail::plan
