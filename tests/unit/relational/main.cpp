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
  constexpr std::string_view kOption = "--duckdb=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kOption)) {
      quail::relational::Library() = std::string(argument.substr(kOption.size()));
    }
  }
  if (!std::filesystem::exists(quail::relational::Library())) quail::relational::Library() = "";
  return RUN_ALL_TESTS();
}
