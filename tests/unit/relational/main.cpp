#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "engine.h"
#include "relational/duckdb_library.h"
#include "test_paths.h"

namespace quail::relational {
namespace {

std::string& Library() {
  static std::string path = QUAIL_DEPS_DIR "/duckdb/libduckdb.so";
  return path;
}

}  // namespace

const std::string& LibraryUnderTest() { return Library(); }

std::unique_ptr<Connection> Open(const std::string& database, unsigned threads) {
  return OpenDuckDb({.library_path = LibraryUnderTest(), .database = database, .threads = threads});
}

/// Prints the error of loading a library, for tests that need a process without one.
static int TryLibrary(const std::string& path) {
  try {
    LoadDuckDb(path);
  } catch (const Error& error) {
    std::puts(error.what());
    return error.code() == ErrorCode::kDevice ? 3 : 1;
  }
  return 0;
}

}  // namespace quail::relational

/// One run tests one library: two DuckDBs in one process would share C++ symbols.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  using namespace quail::relational;
  constexpr std::string_view kLibraryOption = "--duckdb=";
  constexpr std::string_view kWriteOption = "--write-database=";
  constexpr std::string_view kTryOption = "--try-library=";
  std::string written;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(kLibraryOption)) Library() = argument.substr(kLibraryOption.size());
    if (argument.starts_with(kWriteOption)) written = argument.substr(kWriteOption.size());
    if (argument.starts_with(kTryOption)) return TryLibrary(argument.substr(kTryOption.size()));
  }
  if (!std::filesystem::exists(Library())) Library() = "";
  if (written.empty()) return RUN_ALL_TESTS();
  QueryText(*Open(written), "CREATE TABLE t AS SELECT 42 AS a");
  return 0;
}
