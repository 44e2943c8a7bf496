#pragma once

#include <cstdio>
#include <string>

namespace quail::columnar {

/// Goes over the messages of an Arrow IPC file, from where it stands to its end, and comes back:
/// refuses what nanoarrow 0.9.0 takes on trust, so that it reads nothing outside of what it holds
/// and asks for no memory that the file cannot fill. What else is wrong in a message, its reader
/// tells. Throws Error{kCorrupt}, Error{kUnsupported} for compressed dictionaries.
void CheckIpcMessages(std::FILE* file, const std::string& path);

}  // namespace quail::columnar
