#include "relational/duckdb_session.h"

#include "quail/error.h"
#include "relational/duckdb_error.h"

namespace quail::relational {

void DuckDbSession::ThrowIfInterrupted() const {
  if (interrupted) throw Error(ErrorCode::kInterrupted, "interrupted");
}

void DuckDbSession::Throw(const char* duckdb_message, std::string_view sql) const {
  ThrowIfInterrupted();
  const Error error =
      ToError(duckdb_message == nullptr ? "DuckDB failed without a message" : duckdb_message, sql);
  guard.Rethrow(error.what());
  throw error;
}

void DuckDbSession::Check(duckdb_error_data error, std::string_view sql) const {
  const DuckDbHandle<duckdb_error_data> owned(api.destroy_error_data, error);
  if (error != nullptr && api.error_data_has_error(error))
    Throw(api.error_data_message(error), sql);
}

}  // namespace quail::relational
