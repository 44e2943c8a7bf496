#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quail::test {

enum class RecordKind { kTable, kOracle, kDialect, kStatement, kQuery, kCounters, kNotice };

/// One record of a .test file (tests/sql/README.md has the format).
struct Record {
  RecordKind kind = RecordKind::kStatement;
  std::size_t line = 0;               ///< 1-based, of its first line
  std::size_t end = 0;                ///< first line behind it
  std::string head;                   ///< rest of the first line
  std::string body;                   ///< SQL, rows, rules
  std::vector<std::string> expected;  ///< kQuery: rows
  std::size_t expected_line = 0;      ///< first line behind ----
  bool sorted = false;                ///< kQuery: rowsort
  bool oracle_only = false;           ///< "onlyif oracle" stands before it
};

/// Throws std::runtime_error naming the line.
std::vector<Record> ReadRecords(std::string_view text);

}  // namespace quail::test
