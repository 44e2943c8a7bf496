#pragma once

#include <string>

#include "relational/duckdb_api.h"

namespace quail::relational {

/// Finds and loads DuckDB. With an explicit path only that file is tried; else, in this order: a
/// DuckDB that this process has loaded already (Python's `_duckdb` module: two libraries share no
/// state), the system's libduckdb.so,
/// ${XDG_CACHE_HOME:-~/.cache}/quail/duckdb/libduckdb.so, the one fetched beside the build. Any
/// thread. Throws Error{kDevice}, naming what was tried and how to get a library, when none is
/// usable: missing, older than 1.5, or without the C API. A process keeps the first library it
/// loaded: asking for another one by path is an error.
const DuckDbApi& LoadDuckDb(const std::string& explicit_path);

/// The library that LoadDuckDb loaded. REQUIRES: it has.
const DuckDbApi& LoadedDuckDb();

}  // namespace quail::relational
