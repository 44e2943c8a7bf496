#include "relational/arrow_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "columnar/derived_array.h"
#include "columnar/named_members.h"
#include "columnar/validate.h"
#include "quail/error.h"
#include "relational/quote.h"
#include "relational/type_name.h"

namespace quail::relational {
namespace {

/// Rows are loaded under this name; no dialect's name can be it.
constexpr const char* kLoadingName = "quail loading";

struct StreamDeleter {
  void operator()(ArrowArrayStream* stream) const {
    if (stream->release != nullptr) stream->release(stream);
  }
};
using OwnedStream = std::unique_ptr<ArrowArrayStream, StreamDeleter>;

[[noreturn]] void ThrowStreamError(ArrowArrayStream* stream, int code) {
  const char* message = stream->get_last_error(stream);
  throw Error(ErrorCode::kIo,
              fmt::format("the Arrow stream failed: {}",
                          message == nullptr ? fmt::format("error {}", code) : message));
}

/// Arrow data on its way into DuckDB's temporary table kLoadingName.
class Loader {
 public:
  Loader(DuckDbSession& session, Connection& connection, ArrowArrayStream* stream)
      : session_(session),
        connection_(connection),
        stream_(stream),
        converted_(session.api.destroy_arrow_converted_schema),
        appender_(session.api.appender_destroy) {}

  ~Loader() {
    if (table_exists_) session_.guard.Run([this] { Drop(kLoadingName); });
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  void Load() {
    ReadSchema();
    CreateTable();
    while (columnar::OwnedArray array = ReadArray()) Append(std::move(array));
    if (session_.api.appender_close(appender_.get()) != DuckDBSuccess) ThrowAppenderError();
  }

  void RenameTo(std::string_view table) {
    Drop(table);
    connection_.Query(fmt::format("ALTER TABLE temp.main.{} RENAME TO {}", QuoteName(kLoadingName),
                                  QuoteName(table)));
    table_exists_ = false;
  }

 private:
  void ReadSchema() {
    if (stream_->get_schema == nullptr || stream_->get_next == nullptr) {
      throw Error(ErrorCode::kCorrupt, "the Arrow stream lacks its functions");
    }
    schema_.reset(new ArrowSchema{});
    if (const int code = stream_->get_schema(stream_.get(), schema_.get()); code != 0) {
      ThrowStreamError(stream_.get(), code);
    }
    columnar::CheckSchema(*schema_);
    columnar::CheckImportable(*schema_);
    if (schema_->n_children == 0) throw Error(ErrorCode::kUsage, "a table without columns");
    schema_ = columnar::WithNamedMembers(*schema_);
    session_.Check(
        session_.api.schema_from_arrow(session_.connection.get(), schema_.get(), converted_.out()),
        nullptr);
  }

  columnar::OwnedArray ReadArray() {
    columnar::OwnedArray array(new ArrowArray{});
    if (const int code = stream_->get_next(stream_.get(), array.get()); code != 0) {
      ThrowStreamError(stream_.get(), code);
    }
    if (array->release == nullptr) return nullptr;
    columnar::CheckArray(*schema_, *array);
    columnar::CheckText(*schema_, *array);
    if (array->null_count > 0) {
      throw Error(ErrorCode::kCorrupt, "Arrow data: a row of the table itself is null");
    }
    return array;
  }

  DuckDbHandle<duckdb_data_chunk> ToChunk(columnar::OwnedArray array) {
    DuckDbHandle<duckdb_data_chunk> chunk(session_.api.destroy_data_chunk);
    session_.Check(session_.api.data_chunk_from_arrow(session_.connection.get(), array.get(),
                                                      converted_.get(), chunk.out()),
                   nullptr);
    return chunk;
  }

  void CreateTable() {
    const DuckDbApi& api = session_.api;
    const auto chunk = ToChunk(columnar::MakeEmptyArray(*schema_));
    std::string columns;
    for (std::int64_t i = 0; i < schema_->n_children; ++i) {
      const DuckDbHandle<duckdb_logical_type> type(
          api.destroy_logical_type, api.vector_get_column_type(api.data_chunk_get_vector(
                                        chunk.get(), static_cast<idx_t>(i))));
      const char* name = schema_->children[i]->name;
      if (i > 0) columns += ", ";
      columns +=
          fmt::format("{} {}", QuoteName(name == nullptr ? "" : name), TypeName(api, type.get()));
    }
    connection_.Query(
        fmt::format("CREATE OR REPLACE TEMP TABLE {} ({})", QuoteName(kLoadingName), columns));
    table_exists_ = true;
    if (api.appender_create_ext(session_.connection.get(), "temp", "main", kLoadingName,
                                appender_.out()) != DuckDBSuccess) {
      ThrowAppenderError();
    }
  }

  void Append(columnar::OwnedArray array) {
    const std::shared_ptr<const ArrowArray> owner = std::move(array);
    const auto step = static_cast<std::int64_t>(session_.api.vector_size());
    for (std::int64_t begin = 0; begin < owner->length; begin += step) {
      session_.ThrowIfInterrupted();
      const auto chunk =
          ToChunk(columnar::SliceRows(owner, begin, std::min(step, owner->length - begin)));
      if (session_.api.append_data_chunk(appender_.get(), chunk.get()) != DuckDBSuccess) {
        ThrowAppenderError();
      }
    }
  }

  [[noreturn]] void ThrowAppenderError() {
    session_.Check(session_.api.appender_error_data(appender_.get()), nullptr);
    session_.Throw(nullptr, nullptr);
  }

  void Drop(std::string_view table) {
    connection_.TidyUp(fmt::format("DROP TABLE IF EXISTS temp.main.{}", QuoteName(table)));
  }

  DuckDbSession& session_;
  Connection& connection_;
  OwnedStream stream_;
  columnar::OwnedSchema schema_;
  DuckDbHandle<duckdb_arrow_converted_schema> converted_;
  bool table_exists_ = false;
  DuckDbHandle<duckdb_appender, duckdb_state> appender_;
};

}  // namespace

void LoadArrowTable(DuckDbSession& session, Connection& connection, std::string_view table,
                    ArrowArrayStream* stream) {
  QUAIL_CHECK(stream != nullptr);
  if (table.empty()) throw Error(ErrorCode::kUsage, "a table needs a name");
  Loader loader(session, connection, stream);
  loader.Load();
  loader.RenameTo(table);
}

}  // namespace quail::relational
