#include "relational/duckdb_session.h"

#include <optional>

#include "quail/error.h"
#include "relational/duckdb_error.h"

namespace quail::relational {

void DuckDbSession::ThrowIfInterrupted() const {
  if (!interrupted) return;
  // A statement that began after the interrupt has forgotten it, and its threads are at work
  // already.
  api.interrupt(connection.get());
  throw Error(ErrorCode::kInterrupted, "interrupted");
}

void DuckDbSession::Throw(const char* duckdb_message, const std::string* sql) const {
  ThrowIfInterrupted();
  const Error error =
      ToError(duckdb_message == nullptr ? "DuckDB failed without a message" : duckdb_message,
              sql == nullptr ? "" : *sql);
  guard.Rethrow(error.what());
  throw Error(error.code(), error.what(), sql == nullptr ? std::nullopt : error.position());
}

void DuckDbSession::Check(duckdb_error_data error, const std::string* sql) const {
  const DuckDbHandle<duckdb_error_data> owned(api.destroy_error_data, error);
  if (error != nullptr && api.error_data_has_error(error))
    Throw(api.error_data_message(error), sql);
}

}  // namespace quail::relational
