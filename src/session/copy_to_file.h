#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "relational/connection.h"

namespace quail::session {

/// What stands before the query in the statement that CopyToFile runs: errors of the query have
/// places behind it.
inline constexpr std::string_view kCopyBefore = "COPY (";

/// "(FORMAT parquet ..)" for the formats that the engine's COPY writes. Throws Error{kUnsupported}.
std::string CopyOptions(std::string_view format);
/// Writes the rows of a query to a file, in place. Returns how many. Throws as Connection::Query.
std::uint64_t CopyToFile(relational::Connection& connection, std::string_view query,
                         std::string_view path, std::string_view copy_options,
                         relational::ErrorPlaces places);

}  // namespace quail::session
