// A library as an old DuckDB would be: its version, and hardly a function.

extern "C" const char* duckdb_library_version();
extern "C" const char* duckdb_library_version() { return OLD_DUCKDB_VERSION; }
