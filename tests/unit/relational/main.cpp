#include <gtest/gtest.h>

#include <filesystem>

#include "engine.h"

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

}  // namespace quail::relational

/// One run tests one library: two DuckDBs in one process would share C++ symbols.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  using namespace quail::relational;
  constexpr std::string_view kLibraryOption = "--duckdb=";
  constexpr std::string_view kWriteOption = "--write-database=";
  std::string written;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(kLibraryOption)) Library() = argument.substr(kLibraryOption.size());
    if (argument.starts_with(kWriteOption)) written = argument.substr(kWriteOption.size());
  }
  if (!std::filesystem::exists(Library())) Library() = "";
  if (written.empty()) return RUN_ALL_TESTS();
  QueryText(*Open(written), "CREATE TABLE t AS SELECT 42 AS a");
  return 0;
}
