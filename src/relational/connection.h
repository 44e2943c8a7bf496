#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/batch.h"

namespace quail::relational {

/// The rows of one statement, pulled batch by batch. Read it to the end or destroy it before the
/// connection's next Query: a new statement ends an open one, or is refused while it is open,
/// depending on the engine's version. Errors while running throw Error{kQuery} (position in the
/// text that was given to Query, where the engine tells one) or Error{kInterrupted}.
class ResultStream {
 public:
  virtual ~ResultStream() = default;
  virtual const columnar::Schema& schema() const = 0;
  virtual std::shared_ptr<const ArrowSchema> arrow_schema() const = 0;
  /// The next rows, never empty; nullopt at the end.
  virtual std::optional<columnar::Batch> Next() = 0;
  /// Whether the statement returns rows (SELECT, DESCRIBE ..), rather than a count or nothing
  /// (CREATE, SET ..).
  virtual bool has_rows() const = 0;
  /// How many rows a statement without any changed or wrote, where the engine counts them.
  virtual std::optional<std::uint64_t> changed_rows() const = 0;
};

enum class ScalarType : std::uint8_t { kBoolean, kDouble, kInteger, kText, kIntegerList };

/// A column of arguments or results of a scalar function, one value a row, `size` rows. Views,
/// valid during the call. integers: INTEGER values (int32) or, for kIntegerList, the children of
/// all rows with row i's in [list_offsets[i], list_offsets[i] + list_lengths[i]).
struct ScalarColumn {
  ScalarType type = ScalarType::kInteger;
  const std::uint64_t* validity = nullptr;  ///< bit i set = not null; nullptr = no nulls
  std::span<const std::int32_t> integers;
  std::span<const std::string_view> texts;
  std::span<const std::uint64_t> list_offsets;
  std::span<const std::uint64_t> list_lengths;

  bool is_null(std::size_t row) const {
    return validity != nullptr && ((validity[row / 64] >> (row % 64)) & 1U) == 0;
  }
};

/// Where a scalar function writes its results; every row must be written.
class ScalarOutput {
 public:
  virtual ~ScalarOutput() = default;
  virtual void SetNull(std::size_t row) = 0;
  virtual void SetBoolean(std::size_t row, bool value) = 0;
  virtual void SetDouble(std::size_t row, double value) = 0;
  virtual void SetInteger(std::size_t row, std::int32_t value) = 0;
  virtual void SetText(std::size_t row, std::string_view value) = 0;
};

/// A scalar function served by our code: called from the engine's threads, several at once. Never
/// volatile. NULL arguments are passed on, not short-cut. `invoke` may throw quail::Error: it fails
/// the statement with that error.
struct ScalarFunction {
  std::string name;
  std::vector<ScalarType> parameters;
  std::optional<ScalarType> variadic;  ///< type of any number of further arguments
  ScalarType result = ScalarType::kBoolean;
  std::function<void(std::span<const ScalarColumn> arguments, std::size_t rows, ScalarOutput& out)>
      invoke;
};

/// A table function without arguments served by our code, single-threaded: all columns VARCHAR,
/// BIGINT or DOUBLE.
struct TableFunction {
  struct Column {
    std::string name;
    ScalarType type = ScalarType::kText;  ///< kText, kInteger (BIGINT) or kDouble
  };
  using Cell = std::optional<std::string>;
  std::string name;
  std::vector<Column> columns;
  /// Called when a scan starts: all rows, each cell as text (numbers in decimal) or NULL.
  std::function<std::vector<std::vector<Cell>>()> rows;
};

/// Whether errors say where in a statement they are: of SQL that the user did not write they must
/// not.
enum class ErrorPlaces : std::uint8_t { kInSql, kNone };

/// The door to the relational engine. One connection = one session: temp tables, settings,
/// transaction. Not thread-safe but for Interrupt and Resume.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Runs one statement; a statement without rows is complete when this returns. Throws
  /// Error{kSyntax | kBind | kIo | kOutOfMemory | kInterrupted | kQuery}: the engine's own message
  /// with its place in `sql`, or the very error that one of our functions threw. Of several
  /// statements in one text all run, and the last one's rows come back.
  virtual std::unique_ptr<ResultStream> Query(std::string_view sql, ErrorPlaces places) = 0;
  std::unique_ptr<ResultStream> Query(std::string_view sql) {
    return Query(sql, ErrorPlaces::kInSql);
  }
  /// Throws Error{kSyntax}, as Query does, for what the engine's parser refuses; runs nothing.
  virtual void CheckSyntax(std::string_view sql) = 0;
  /// Registering a function again (same name and parameters) replaces it.
  virtual void Register(ScalarFunction function) = 0;
  virtual void Register(TableFunction function) = 0;
  /// Makes a temporary table of an Arrow stream's rows, in place of an earlier one of that name,
  /// which stays when this fails (copied; the stream is consumed and released). Throws
  /// Error{kCorrupt} for Arrow data that contradicts itself or holds text that is not UTF-8,
  /// Error{kUnsupported} for a type without import, Error{kIo} from the stream.
  virtual void Register(std::string_view table, ArrowArrayStream* stream) = 0;
  /// Makes a temporary table of the rows that a result of this connection has left, in place of an
  /// earlier one of that name: its columns, named q0, q1, .., have the result's types. Ends the
  /// result. Throws as Query.
  virtual std::uint64_t Keep(std::unique_ptr<ResultStream> rows, std::string_view table) = 0;
  /// As Query, for what must be tidied up though an Interrupt came before it. Its rows are dropped.
  virtual void TidyUp(std::string_view sql) = 0;
  /// Any thread: the running Query or Next throws Error{kInterrupted} soon, and so does each that
  /// follows until Resume.
  virtual void Interrupt() noexcept = 0;
  virtual void Resume() noexcept = 0;

  virtual std::string engine_version() const = 0;  ///< "v1.5.5"
};

/// A value of a simple type (Boolean, integers, floats, texts) as the engine's CAST to VARCHAR
/// writes it. Throws Error{kUnsupported} for other types. REQUIRES: not null.
std::string CellText(const columnar::Batch& batch, std::size_t column, std::size_t row,
                     const columnar::Field& field);

/// Runs a statement and returns all its rows as text cells (NULL = nullopt). For small results.
std::vector<std::vector<std::optional<std::string>>> QueryText(
    Connection& connection, std::string_view sql, ErrorPlaces places = ErrorPlaces::kInSql);

/// Where libduckdb may be: an explicit path only, if given, else the usual places (see OpenDuckDb).
struct DuckDbOptions {
  std::string library_path;  ///< empty: search, or the one that this process uses already
  std::string database;      ///< a DuckDB file; empty: in memory
  unsigned threads = 0;      ///< 0: the engine's default
};

/// Opens DuckDB through its C API, found at run time: the explicit path; a `_duckdb` already loaded
/// in this process; a system libduckdb; the package cache. Throws Error{kDevice} that says how to
/// get the library when none is usable or it is too old, Error{kIo | kCorrupt} when the database
/// cannot be opened (a file written by a newer version names both).
std::unique_ptr<Connection> OpenDuckDb(const DuckDbOptions& options);

}  // namespace quail::relational
