#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct ArrowArrayStream;

namespace quail {

struct ColumnInfo {
  std::string name;
  std::string type;  ///< as DuckDB prints it
};

/// How cells come out of a Result.
enum class CellForm : std::uint8_t {
  kText,  ///< as DuckDB's CAST to VARCHAR writes them
  kJson,  ///< as DuckDB writes JSON, but NaN and infinities, which JSON has not, as texts
};

/// The rows of one statement, pulled. Runs the final relational part while it is read.
class Result {
 public:
  virtual ~Result() = default;
  /// False for statements that only have an effect (SET, CREATE ..): nothing to print.
  virtual bool has_rows() const = 0;
  /// The result of EXPLAIN: one cell, a text to show as it is.
  virtual bool is_plan() const { return false; }
  virtual const std::vector<ColumnInfo>& columns() const = 0;
  /// Some next rows as cells, NULL = nullopt, row after row; empty at the end. The form is chosen
  /// by Session::Run.
  virtual std::vector<std::vector<std::optional<std::string>>> Next() = 0;
  /// Instead of Next: reads the rows to the end and drops them. Returns how many there were.
  virtual std::uint64_t Drain() = 0;
  /// Instead of Next: hands all rows over as a stream of the Arrow C stream interface.
  virtual void Export(ArrowArrayStream* out) = 0;
};

}  // namespace quail
