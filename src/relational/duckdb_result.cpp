#include "relational/duckdb_result.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "relational/type_name.h"

namespace quail::relational {
namespace {

columnar::OwnedSchema EmptySchema() {
  columnar::OwnedSchema schema(new ArrowSchema{});
  schema->format = "+s";
  schema->name = "";
  schema->release = [](ArrowSchema* self) { self->release = nullptr; };
  return schema;
}

}  // namespace

DuckDbResult::DuckDbResult(std::shared_ptr<DuckDbSession> session)
    : session_(std::move(session)),
      prepared_(session_->api.destroy_prepare),
      pending_(session_->api.destroy_pending),
      result_(session_->api),
      options_(session_->api.destroy_arrow_options),
      arrow_schema_(EmptySchema()),
      finished_(true) {}

DuckDbResult::DuckDbResult(std::shared_ptr<DuckDbSession> session,
                           std::shared_ptr<const std::string> sql,
                           duckdb_extracted_statements statements, idx_t index)
    : session_(std::move(session)),
      sql_(std::move(sql)),
      prepared_(session_->api.destroy_prepare),
      pending_(session_->api.destroy_pending),
      result_(session_->api),
      options_(session_->api.destroy_arrow_options) {
  Execute(statements, index);
  ReadSchema();
  // Only rows are left to the caller: a statement without any is complete when this returns.
  while (!has_rows_ && !finished_) CountChanged(Fetch().get());
}

void DuckDbResult::Execute(duckdb_extracted_statements statements, idx_t index) {
  const DuckDbApi& api = session_->api;
  if (api.prepare_extracted_statement(session_->connection.get(), statements, index,
                                      prepared_.out()) != DuckDBSuccess) {
    session_->Throw(api.prepare_error(prepared_.get()), sql_.get());
  }
  if (api.pending_prepared_streaming(prepared_.get(), pending_.out()) != DuckDBSuccess) {
    session_->Throw(api.pending_error(pending_.get()), sql_.get());
  }
  // DuckDB forgets an earlier interrupt when it begins a statement.
  session_->ThrowIfInterrupted();
  Work();
  if (api.execute_pending(pending_.get(), &result_.value) != DuckDBSuccess) {
    session_->Throw(api.result_error(&result_.value), sql_.get());
  }
  const duckdb_result_type type = api.result_return_type(result_.value);
  has_rows_ = type == DUCKDB_RESULT_TYPE_QUERY_RESULT;
  if (type == DUCKDB_RESULT_TYPE_CHANGED_ROWS) changed_rows_ = 0;
}

/// Takes part in the work until the first rows are there. DuckDB's own loop asks for a task without
/// a pause, which costs the thread that has the last one a good part of its core.
void DuckDbResult::Work() {
  constexpr std::chrono::microseconds kNap(50);
  for (;;) {
    const duckdb_pending_state state = session_->api.pending_execute_task(pending_.get());
    if (state == DUCKDB_PENDING_RESULT_READY) return;
    if (state == DUCKDB_PENDING_ERROR) {
      session_->Throw(session_->api.pending_error(pending_.get()), sql_.get());
    }
    if (state == DUCKDB_PENDING_NO_TASKS_AVAILABLE) std::this_thread::sleep_for(kNap);
  }
}

void DuckDbResult::ReadSchema() {
  const DuckDbApi& api = session_->api;
  const idx_t count = has_rows_ ? api.column_count(&result_.value) : 0;
  std::vector<DuckDbHandle<duckdb_logical_type>> types;
  std::vector<duckdb_logical_type> type_pointers;
  std::vector<const char*> names;
  for (idx_t i = 0; i < count; ++i) {
    types.emplace_back(api.destroy_logical_type, api.column_logical_type(&result_.value, i));
    type_pointers.push_back(types.back().get());
    names.push_back(api.column_name(&result_.value, i));
    schema_.push_back({names.back(), TypeName(api, type_pointers.back())});
  }
  if (!has_rows_) {
    arrow_schema_ = EmptySchema();
    return;
  }
  *options_.out() = api.result_get_arrow_options(&result_.value);
  columnar::OwnedSchema arrow(new ArrowSchema{});
  session_->Check(
      api.to_arrow_schema(options_.get(), type_pointers.data(), names.data(), count, arrow.get()),
      sql_.get());
  arrow_schema_ = std::move(arrow);
}

DuckDbHandle<duckdb_data_chunk> DuckDbResult::Fetch() {
  const DuckDbApi& api = session_->api;
  session_->ThrowIfInterrupted();
  DuckDbHandle<duckdb_data_chunk> chunk(api.destroy_data_chunk, api.fetch_chunk(result_.value));
  if (chunk.get() == nullptr) {
    finished_ = true;
    if (const char* message = api.result_error(&result_.value))
      session_->Throw(message, sql_.get());
  }
  return chunk;
}

/// How many rows a statement changed is all that its own rows, BIGINT, say.
void DuckDbResult::CountChanged(duckdb_data_chunk chunk) {
  const DuckDbApi& api = session_->api;
  if (!changed_rows_ || chunk == nullptr || api.data_chunk_get_size(chunk) == 0) return;
  const void* data = api.vector_get_data(api.data_chunk_get_vector(chunk, 0));
  *changed_rows_ += static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(data));
}

columnar::OwnedArray DuckDbResult::ToArrow(duckdb_data_chunk chunk) {
  columnar::OwnedArray array(new ArrowArray{});
  session_->Check(session_->api.data_chunk_to_arrow(options_.get(), chunk, array.get()),
                  sql_.get());
  return array;
}

std::vector<DuckDbHandle<duckdb_data_chunk>> DuckDbResult::TakeChunks() {
  std::vector<DuckDbHandle<duckdb_data_chunk>> chunks;
  while (!finished_) {
    auto chunk = Fetch();
    if (chunk.get() != nullptr) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

std::optional<columnar::Batch> DuckDbResult::Next() {
  while (!finished_) {
    const auto chunk = Fetch();
    if (chunk.get() == nullptr) break;
    if (session_->api.data_chunk_get_size(chunk.get()) == 0) continue;
    return columnar::Batch(arrow_schema_, ToArrow(chunk.get()));
  }
  return std::nullopt;
}

}  // namespace quail::relational
