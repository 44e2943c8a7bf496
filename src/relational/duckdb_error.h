#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "quail/error.h"

namespace quail::relational {

/// DuckDB's error text as an Error: the kind from DuckDB's exception type, the message without the
/// type and without the quoted line, the position (where DuckDB tells one) as a place in `sql`.
/// Reads both the JSON of the setting errors_as_json and the plain text "Binder Error: ..\n\nLINE
/// 1: ..".
Error ToError(std::string_view duckdb_message, std::string_view sql);

/// The place in `sql` that one of DuckDB's JSON reports of an error names in "position" and
/// "error_subtype", if it does. The parser of DuckDB 1.5 counts characters in its syntax errors;
/// everything else counts bytes.
std::optional<TextPosition> ReportedPosition(const nlohmann::json& report, std::string_view sql);

}  // namespace quail::relational
