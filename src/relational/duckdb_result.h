#pragma once

#include <memory>
#include <string>
#include <vector>

#include "relational/connection.h"
#include "relational/duckdb_session.h"

namespace quail::relational {

/// A statement that DuckDB has begun to run: rows are fetched chunk by chunk as they are asked for.
/// Everything that the statement needs lives here, as DuckDB stops a statement whose pending result
/// goes.
class DuckDbResult final : public ResultStream {
 public:
  /// Runs statement `index` of `statements` up to its first rows. Throws as Connection::Query, with
  /// places in `sql` unless it is null.
  DuckDbResult(std::shared_ptr<DuckDbSession> session, std::shared_ptr<const std::string> sql,
               duckdb_extracted_statements statements, idx_t index);
  /// The empty result of a text without a statement.
  explicit DuckDbResult(std::shared_ptr<DuckDbSession> session);

  const columnar::Schema& schema() const override { return schema_; }
  std::shared_ptr<const ArrowSchema> arrow_schema() const override { return arrow_schema_; }
  std::optional<columnar::Batch> Next() override;
  bool has_rows() const override { return has_rows_; }
  std::optional<std::uint64_t> changed_rows() const override { return changed_rows_; }
  /// The rows that are left, as the engine has them.
  std::vector<DuckDbHandle<duckdb_data_chunk>> TakeChunks();

 private:
  /// A result lives in the caller's memory, unlike the other objects of the C API.
  struct OwnedResult {
    const DuckDbApi& api;
    duckdb_result value{};

    explicit OwnedResult(const DuckDbApi& duckdb) : api(duckdb) {}
    OwnedResult(const OwnedResult&) = delete;
    OwnedResult& operator=(const OwnedResult&) = delete;
    ~OwnedResult() {
      if (value.internal_data != nullptr) api.destroy_result(&value);
    }
  };

  void Execute(duckdb_extracted_statements statements, idx_t index);
  void Work();
  void ReadSchema();
  DuckDbHandle<duckdb_data_chunk> Fetch();
  void CountChanged(duckdb_data_chunk chunk);
  columnar::OwnedArray ToArrow(duckdb_data_chunk chunk);

  std::shared_ptr<DuckDbSession> session_;
  std::shared_ptr<const std::string> sql_;
  DuckDbHandle<duckdb_prepared_statement> prepared_;
  DuckDbHandle<duckdb_pending_result> pending_;
  OwnedResult result_;
  DuckDbHandle<duckdb_arrow_options> options_;
  columnar::Schema schema_;
  std::shared_ptr<const ArrowSchema> arrow_schema_;
  bool has_rows_ = false;
  std::optional<std::uint64_t> changed_rows_;
  bool finished_ = false;
};

}  // namespace quail::relational
