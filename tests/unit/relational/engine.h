#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quail/error.h"
#include "relational/connection.h"

namespace quail::relational {

using TextRows = std::vector<std::vector<std::optional<std::string>>>;

/// The library that this run of the tests uses (--duckdb=PATH, else the fetched one); empty when
/// there is none.
const std::string& LibraryUnderTest();

/// A connection to an in-memory database, or to `database`.
std::unique_ptr<Connection> Open(const std::string& database = "", unsigned threads = 0);

/// The error that running `action` throws; fails the test when it throws none.
template <typename Action>
Error ErrorOf(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(ErrorCode::kUsage, "none");
}

/// A test that needs DuckDB: skipped, and says so, where the library was not fetched.
class EngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (LibraryUnderTest().empty()) GTEST_SKIP() << "skipped: no DuckDB was fetched";
    connection = Open();
  }

  TextRows Rows(std::string_view sql) { return QueryText(*connection, sql); }
  std::string Single(std::string_view sql) { return Rows(sql).at(0).at(0).value_or("NULL"); }
  Error QueryError(std::string_view sql) {
    return ErrorOf([&] { Rows(sql); });
  }

  std::unique_ptr<Connection> connection;
};

}  // namespace quail::relational
