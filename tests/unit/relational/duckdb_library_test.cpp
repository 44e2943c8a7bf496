#include "relational/duckdb_library.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "test_paths.h"

namespace quail::relational {
namespace {

/// What loading `path` says in a process that has no DuckDB yet; the exit status tells its kind.
struct Attempt {
  int status = 0;  ///< 0 loaded, 3 Error{kDevice}
  std::string message;
};

Attempt Try(const std::string& path) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::FILE* pipe = ::popen(fmt::format("'{}' '--try-library={}'", self, path).c_str(), "r");
  Attempt attempt;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) attempt.message += part.data();
  attempt.status = WEXITSTATUS(::pclose(pipe));
  return attempt;
}

void ExpectRefused(const std::string& path, const std::string& reason) {
  const Attempt attempt = Try(path);
  EXPECT_EQ(attempt.status, 3);
  EXPECT_NE(attempt.message.find(path + ": "), std::string::npos) << attempt.message;
  EXPECT_NE(attempt.message.find(reason), std::string::npos) << attempt.message;
  EXPECT_NE(attempt.message.find("./dev setup"), std::string::npos) << attempt.message;
  EXPECT_NE(attempt.message.find("pip install duckdb"), std::string::npos) << attempt.message;
}

TEST(DuckDbLibraryTest, AMissingLibrarySaysHowToGetOne) {
  ExpectRefused("/no/such/libduckdb.so", "No such file");
}

TEST(DuckDbLibraryTest, AnOldLibraryIsTooOld) {
  ExpectRefused(QUAIL_OLD_DUCKDB, "DuckDB v1.4.3 is too old");
}

TEST(DuckDbLibraryTest, ALibraryWithoutAFunctionIsNamed) {
  ExpectRefused(QUAIL_PARTIAL_DUCKDB, "DuckDB v1.9.0 lacks duckdb_vector_size");
}

TEST(DuckDbLibraryTest, AnotherLibraryHasNoCApi) { ExpectRefused("libm.so.6", "C API"); }

TEST(DuckDbLibraryTest, APythonModuleNeedsPython) {
  const std::string module = QUAIL_DEPS_DIR "/duckdb2/_duckdb.so";
  if (!std::filesystem::exists(module)) GTEST_SKIP() << "skipped: no Python module was fetched";
  ExpectRefused(module, "Python");
}

}  // namespace
}  // namespace quail::relational
