#include "relational/kept_rows.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "relational/duckdb_result.h"
#include "relational/quote.h"

namespace quail::relational {
namespace {

[[noreturn]] void ThrowAppenderError(DuckDbSession& session, duckdb_appender appender) {
  session.Check(session.api.appender_error_data(appender), nullptr);
  session.Throw(nullptr, nullptr);
}

void CreateTable(Connection& connection, const columnar::Schema& schema, std::string_view table) {
  std::string columns;
  for (std::size_t i = 0; i < schema.size(); ++i) {
    columns += fmt::format("{}q{} {}", i == 0 ? "" : ", ", i, schema[i].type);
  }
  connection.Query(fmt::format("CREATE OR REPLACE TEMP TABLE {} ({})", QuoteName(table), columns),
                   ErrorPlaces::kNone);
}

}  // namespace

std::uint64_t KeepRows(DuckDbSession& session, Connection& connection,
                       std::unique_ptr<ResultStream> rows, std::string_view table) {
  auto* result = dynamic_cast<DuckDbResult*>(rows.get());
  QUAIL_CHECK_MSG(result != nullptr, "a result of another engine");
  const columnar::Schema schema = result->schema();
  const auto chunks = result->TakeChunks();
  rows.reset();  // no other statement may run while it is open
  CreateTable(connection, schema, table);
  const DuckDbApi& api = session.api;
  DuckDbHandle<duckdb_appender, duckdb_state> appender(api.appender_destroy);
  const std::string name(table);
  if (api.appender_create_ext(session.connection.get(), "temp", "main", name.c_str(),
                              appender.out()) != DuckDBSuccess) {
    ThrowAppenderError(session, appender.get());
  }
  std::uint64_t count = 0;
  for (const auto& chunk : chunks) {
    session.ThrowIfInterrupted();
    count += api.data_chunk_get_size(chunk.get());
    if (api.append_data_chunk(appender.get(), chunk.get()) != DuckDBSuccess) {
      ThrowAppenderError(session, appender.get());
    }
  }
  if (api.appender_close(appender.get()) != DuckDBSuccess) {
    ThrowAppenderError(session, appender.get());
  }
  return count;
}

}  // namespace quail::relational
