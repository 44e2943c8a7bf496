#include "session/copy_to_file.h"

#include <fmt/format.h>

#include "quail/error.h"
#include "relational/quote.h"

namespace quail::session {

std::string CopyOptions(std::string_view format) {
  // The engine's own temporary file would take the place of a link, /dev/stdout for one.
  if (format == "parquet") return "(FORMAT parquet, USE_TMP_FILE false)";
  if (format == "csv") return "(FORMAT csv, HEADER true, USE_TMP_FILE false)";
  if (format == "json") return "(FORMAT json, ARRAY true, USE_TMP_FILE false)";
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("format {} is not supported yet (parquet, arrow, csv, json are)", format));
}

std::uint64_t CopyToFile(relational::Connection& connection, std::string_view query,
                         std::string_view path, std::string_view copy_options,
                         relational::ErrorPlaces places) {
  const std::string sql = fmt::format("{}{}\n) TO {} {}", kCopyBefore, query,
                                      relational::QuoteText(path), copy_options);
  return connection.Query(sql, places)->changed_rows().value_or(0);
}

}  // namespace quail::session
