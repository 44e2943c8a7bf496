#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine.h"
#include "relational/duckdb_library.h"
#include "test_paths.h"

namespace quail::relational {
namespace {

namespace fs = std::filesystem;

class DatabaseTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    path = (fs::temp_directory_path() / ("quail_database_" + std::to_string(::getpid()))).string();
    fs::remove(path);
  }
  void TearDown() override {
    fs::remove(path);
    fs::remove(path + ".wal");
  }

  std::string path;
};

TEST_F(DatabaseTest, KeepsTablesInItsFile) {
  QueryText(*Open(path), "CREATE TABLE t AS SELECT 42 AS a");
  EXPECT_EQ(QueryText(*Open(path), "SELECT a FROM t"), (TextRows{{"42"}}));
}

TEST_F(DatabaseTest, KeepsNoFileTablesInItsFile) {
  QueryText(*Open(path), "CREATE TEMP VIEW v AS SELECT 1");
  EXPECT_EQ(ErrorOf([&] { QueryText(*Open(path), "SELECT * FROM v"); }).code(), ErrorCode::kBind);
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsCorrupt) {
  std::ofstream(path) << std::string(20000, 'x');
  const Error error = ErrorOf([&] { Open(path); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find(path), std::string::npos);
  EXPECT_EQ(ErrorOf([] { Open("/no/such/folder/x.db"); }).code(), ErrorCode::kIo);
}

TEST_F(DatabaseTest, AFileOfANewerVersionNamesBoth) {
  const std::string newer = QUAIL_DEPS_DIR "/duckdb2/libduckdb.so";
  if (!fs::exists(newer)) GTEST_SKIP() << "skipped: no newer DuckDB was fetched";
  if (connection->engine_version() != "v1.5.5") GTEST_SKIP() << "skipped: needs DuckDB 1.5";
  // The newer DuckDB writes in a process of its own.
  const std::string command = fmt::format("'{}' --duckdb='{}' --write-database='{}'",
                                          fs::read_symlink("/proc/self/exe").string(), newer, path);
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Error error = ErrorOf([&] { Open(path); });
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_NE(std::string(error.what()).find("written by DuckDB v2.0.0, which this DuckDB v1.5.5"),
            std::string::npos)
      << error.what();
  EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
}

TEST_F(DatabaseTest, UsesAsManyThreadsAsAsked) {
  EXPECT_EQ(QueryText(*Open("", 3), "SELECT current_setting('threads')"), (TextRows{{"3"}}));
}

TEST_F(DatabaseTest, AProcessKeepsItsLibrary) {
  EXPECT_EQ(&LoadDuckDb(""), &LoadDuckDb(LibraryUnderTest()));
  const Error error = ErrorOf([] { LoadDuckDb("/no/such/libduckdb.so"); });
  EXPECT_EQ(error.code(), ErrorCode::kDevice);
  EXPECT_NE(std::string(error.what()).find("already uses"), std::string::npos);
}

}  // namespace
}  // namespace quail::relational
