#pragma once

#include <string_view>

#include "relational/connection.h"

namespace quail::relational {

/// Makes a file the table `name`: a temporary view, read again by each statement that uses it; of
/// Arrow IPC files a temporary copy. The ending tells the format: .csv .tsv .json .jsonl .ndjson
/// .parquet .arrow .feather .ipc, the text formats also with .gz or .zst behind; `path` may be a
/// glob. Columns that a Parquet file's metadata declares as TOKENS (columnar/tokens_type.h) get
/// that type. Throws Error{kIo} for a missing or unreadable file, Error{kCorrupt} where its
/// beginning contradicts its format, Error{kUsage} for another ending; each names the path. A fault
/// further inside comes out of the statement that reads it.
void RegisterFile(Connection& connection, std::string_view name, std::string_view path);
/// Whether a path ends as Arrow IPC files do.
bool IsIpcFile(std::string_view path);

}  // namespace quail::relational
