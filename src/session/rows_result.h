#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quail/result.h"
#include "quail/session.h"
#include "relational/connection.h"

namespace quail::session {

/// Told when the rows have been read to the end, with their number and the time that the engine
/// took, or when reading failed.
/// `locate` moves a place in the query's text into the user's; without it errors have none but what
/// `reword`, which each goes through, gives them.
struct RowsObserver {
  std::function<std::optional<TextPosition>(const TextPosition&)> locate;
  std::function<Error(const Error&)> reword;
  std::function<void(std::uint64_t rows, double seconds)> on_end;
  std::function<void(const Error&)> on_error;
};

/// The rows of a query, run while they are read: as text cells, cast by the engine, or as an Arrow
/// stream.
class RowsResult : public Result {
 public:
  /// `sql` is a query with columns `schema`.
  RowsResult(relational::Connection& connection, std::string sql, const columnar::Schema& schema,
             CellForm form);

  void Observe(RowsObserver observer) { observer_ = std::move(observer); }
  bool has_rows() const override { return true; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  std::vector<std::vector<std::optional<std::string>>> Next() override;
  std::uint64_t Drain() override;
  void Export(ArrowArrayStream* out) override;
  /// Instead of Next: writes the rows as an Arrow IPC file. Returns how many.
  std::uint64_t WriteIpcFile(const std::string& path);

 private:
  std::string CastQuery() const;
  std::string ArrowQuery() const;
  /// Hands over the rows of `sql`, the query or one around it: `begin` is called once before, `end`
  /// after.
  std::uint64_t ReadAll(const std::string& sql,
                        const std::function<void(const ArrowSchema&)>& begin,
                        const std::function<void(columnar::Batch)>& take,
                        const std::function<void()>& end);
  /// Begins `sql`, in which the query stands behind `prefix` bytes.
  void Begin(const std::string& sql, std::size_t prefix);
  template <typename Call>
  auto Placed(Call call);
  std::vector<std::vector<std::optional<std::string>>> Pull();

  relational::Connection* connection_;
  std::string sql_;
  CellForm form_ = CellForm::kText;
  std::vector<ColumnInfo> columns_;
  bool ended_ = false;
  std::uint64_t rows_ = 0;
  double seconds_ = 0;      ///< of running and reading
  std::size_t prefix_ = 0;  ///< bytes before the query in what runs
  // The observer's owner may drop tables that the stream reads: the stream goes first.
  RowsObserver observer_;
  std::unique_ptr<relational::ResultStream> stream_;
};

/// A statement's rows that no query around it could cast: kept in a temp table until they are read.
class KeptRows {
 public:
  /// Reads `rows` to the end.
  KeptRows(relational::Connection& connection, std::unique_ptr<relational::ResultStream> rows);
  ~KeptRows();
  KeptRows(const KeptRows&) = delete;
  KeptRows& operator=(const KeptRows&) = delete;

  /// The query that reads them, with the columns' own names.
  std::string Query() const;
  const columnar::Schema& schema() const { return schema_; }
  std::uint64_t rows() const { return rows_; }
  /// As a result, which drops the table in the end.
  static std::unique_ptr<Result> Read(std::unique_ptr<KeptRows> kept, CellForm form);

 private:
  relational::Connection& connection_;
  columnar::Schema schema_;
  std::uint64_t rows_ = 0;
};

/// A statement with an effect and no rows.
class EffectResult : public Result {
 public:
  bool has_rows() const override { return false; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  std::vector<std::vector<std::optional<std::string>>> Next() override { return {}; }
  std::uint64_t Drain() override { return 0; }
  void Export(ArrowArrayStream* out) override;

 private:
  std::vector<ColumnInfo> columns_;
};

/// Rows that are already known: plans, descriptions.
class KnownResult : public Result {
 public:
  using Rows = std::vector<std::vector<std::optional<std::string>>>;
  KnownResult(std::vector<ColumnInfo> columns, Rows rows, bool is_plan)
      : columns_(std::move(columns)), rows_(std::move(rows)), is_plan_(is_plan) {}

  bool has_rows() const override { return true; }
  bool is_plan() const override { return is_plan_; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  Rows Next() override { return std::exchange(rows_, {}); }
  std::uint64_t Drain() override { return std::exchange(rows_, {}).size(); }
  void Export(ArrowArrayStream* out) override;

 private:
  std::vector<ColumnInfo> columns_;
  Rows rows_;
  bool is_plan_;
};

}  // namespace quail::session
