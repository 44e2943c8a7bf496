#include <fmt/format.h>

#include <array>
#include <fstream>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/text_position.h"
#include "quail/error.h"
#include "relational/arrow_table.h"
#include "relational/connection.h"
#include "relational/duckdb_error.h"
#include "relational/duckdb_functions.h"
#include "relational/duckdb_library.h"
#include "relational/duckdb_result.h"
#include "relational/kept_rows.h"

namespace quail::relational {
namespace {

using Config = DuckDbHandle<duckdb_config>;

/// The version of DuckDB that wrote a database file, as its header names it (behind checksum, magic
/// bytes, storage version and flags); "another version" where it cannot be read.
std::string WriterOf(const std::string& database) {
  constexpr std::streamoff kOffset = 8 + 4 + 8 + 4 * 8;
  std::array<char, 33> name{};
  std::ifstream file(database, std::ios::binary);
  file.seekg(kOffset);
  file.read(name.data(), name.size() - 1);
  return file && name[0] == 'v' ? name.data() : "another version";
}

Error OpenError(const DuckDbApi& api, const std::string& database, std::string_view message) {
  const Error error = ToError(message, "");
  const std::string_view what = error.what();
  if (what.find("database file with version number") != what.npos) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("cannot open '{}': it was written by DuckDB {}, which this DuckDB {} "
                             "cannot read ({})",
                             database, WriterOf(database), api.library_version(),
                             what.substr(0, what.find('\n'))));
  }
  const bool not_a_database =
      what.find("not a valid DuckDB database") != what.npos || what.find("checksum") != what.npos;
  return Error(not_a_database ? ErrorCode::kCorrupt : ErrorCode::kIo,
               fmt::format("cannot open '{}': {}", database, what));
}

std::shared_ptr<DuckDbSession> OpenSession(const DuckDbOptions& options) {
  const DuckDbApi& api = LoadDuckDb(options.library_path);
  auto session = std::make_shared<DuckDbSession>(api);
  Config config(api.destroy_config);
  QUAIL_CHECK(api.create_config(config.out()) == DuckDBSuccess);
  if (options.threads > 0 &&
      api.set_config(config.get(), "threads", std::to_string(options.threads).c_str()) !=
          DuckDBSuccess) {
    throw Error(ErrorCode::kUsage, fmt::format("DuckDB refuses {} threads", options.threads));
  }
  char* message = nullptr;
  const char* path = options.database.empty() ? nullptr : options.database.c_str();
  if (api.open_ext(path, session->database.out(), config.get(), &message) != DuckDBSuccess) {
    const std::unique_ptr<char, void (*)(void*)> owned(message, api.free);
    throw OpenError(api, options.database, message == nullptr ? "" : message);
  }
  if (api.connect(session->database.get(), session->connection.out()) != DuckDBSuccess) {
    throw Error(ErrorCode::kQuery, "DuckDB refuses a connection");
  }
  return session;
}

class DuckDbConnection final : public Connection {
 public:
  explicit DuckDbConnection(std::shared_ptr<DuckDbSession> session)
      : session_(std::move(session)) {}

  using Connection::Query;
  std::unique_ptr<ResultStream> Query(std::string_view sql, ErrorPlaces places) override;
  void CheckSyntax(std::string_view sql) override;
  void Register(ScalarFunction function) override;
  void Register(TableFunction function) override;
  void Register(std::string_view table, ArrowArrayStream* stream) override;
  std::uint64_t Keep(std::unique_ptr<ResultStream> rows, std::string_view table) override;
  void TidyUp(std::string_view sql) override;
  void Interrupt() noexcept override;
  void Resume() noexcept override { session_->interrupted = false; }
  std::string engine_version() const override { return session_->api.library_version(); }

 private:
  DuckDbHandle<duckdb_extracted_statements> Extract(const std::string& sql,
                                                    const std::string* placed, idx_t& count);

  std::shared_ptr<DuckDbSession> session_;
  std::map<std::string, std::shared_ptr<ScalarSlot>> scalar_slots_;  ///< by SignatureOf
  std::map<std::string, std::shared_ptr<TableSlot>> table_slots_;    ///< by name
};

void RefuseNul(std::string_view sql) {
  const std::size_t nul = sql.find('\0');
  if (nul == sql.npos) return;
  throw Error(ErrorCode::kSyntax, "a NUL character in SQL text", base::Locate(sql, nul));
}

/// Parses `sql`; throws what the parser says of it, with places in `placed` if given.
DuckDbHandle<duckdb_extracted_statements> DuckDbConnection::Extract(const std::string& sql,
                                                                    const std::string* placed,
                                                                    idx_t& count) {
  const DuckDbApi& api = session_->api;
  DuckDbHandle<duckdb_extracted_statements> statements(api.destroy_extracted);
  count = api.extract_statements(session_->connection.get(), sql.c_str(), statements.out());
  if (count > 0) return statements;
  if (const char* message = api.extract_statements_error(statements.get())) {
    session_->Throw(message, placed);
  }
  return statements;
}

void DuckDbConnection::CheckSyntax(std::string_view sql) {
  RefuseNul(sql);
  const std::string text(sql);
  idx_t count = 0;
  Extract(text, &text, count);
}

std::unique_ptr<ResultStream> DuckDbConnection::Query(std::string_view sql, ErrorPlaces places) {
  RefuseNul(sql);
  session_->ThrowIfInterrupted();
  session_->guard.Clear();
  const std::string text(sql);
  const auto placed = places == ErrorPlaces::kInSql ? std::make_shared<const std::string>(sql)
                                                    : std::shared_ptr<const std::string>();
  idx_t count = 0;
  const auto statements = Extract(text, placed.get(), count);
  if (count == 0) return std::make_unique<DuckDbResult>(session_);
  // Some statements become several inside DuckDB (PIVOT, IMPORT): the last one has the rows.
  for (idx_t i = 0; i + 1 < count; ++i) {
    DuckDbResult part(session_, placed, statements.get(), i);
    while (part.Next()) {
    }
  }
  return std::make_unique<DuckDbResult>(session_, placed, statements.get(), count - 1);
}

/// What tells overloads of a scalar function apart.
std::string SignatureOf(const ScalarFunction& function) {
  std::string signature = function.name;
  for (const ScalarType type : function.parameters) {
    signature += fmt::format(" {}", static_cast<int>(type));
  }
  if (function.variadic) signature += fmt::format(" {}..", static_cast<int>(*function.variadic));
  return signature;
}

void DuckDbConnection::Register(ScalarFunction function) {
  const std::string signature = SignatureOf(function);
  if (const auto known = scalar_slots_.find(signature); known != scalar_slots_.end()) {
    QUAIL_CHECK_MSG(known->second->function()->result == function.result,
                    "{} registered again with another result type", function.name);
    known->second->Replace(std::move(function));
    return;
  }
  auto slot = std::make_shared<ScalarSlot>(*session_, std::move(function));
  RegisterScalarSlot(slot);
  scalar_slots_.emplace(signature, std::move(slot));
}

void DuckDbConnection::Register(TableFunction function) {
  const std::string name = function.name;
  if (const auto known = table_slots_.find(name); known != table_slots_.end()) {
    known->second->Replace(std::move(function));
    return;
  }
  auto slot = std::make_shared<TableSlot>(*session_, std::move(function));
  RegisterTableSlot(slot);
  table_slots_.emplace(name, std::move(slot));
}

void DuckDbConnection::Register(std::string_view table, ArrowArrayStream* stream) {
  LoadArrowTable(*session_, *this, table, stream);
}

std::uint64_t DuckDbConnection::Keep(std::unique_ptr<ResultStream> rows, std::string_view table) {
  return KeepRows(*session_, *this, std::move(rows), table);
}

/// A flag that is down while this lives, and up again afterwards if it was.
class SetAside {
 public:
  explicit SetAside(std::atomic<bool>& flag) : flag_(flag), was_set_(flag.exchange(false)) {}
  ~SetAside() {
    if (was_set_) flag_ = true;
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

 private:
  std::atomic<bool>& flag_;
  bool was_set_;
};

void DuckDbConnection::TidyUp(std::string_view sql) {
  const SetAside interrupt(session_->interrupted);
  const auto stream = Query(sql, ErrorPlaces::kNone);
  while (stream->Next()) {
  }
}

void DuckDbConnection::Interrupt() noexcept {
  session_->interrupted = true;
  session_->api.interrupt(session_->connection.get());
}

}  // namespace

std::unique_ptr<Connection> OpenDuckDb(const DuckDbOptions& options) {
  auto connection = std::make_unique<DuckDbConnection>(OpenSession(options));
  // Errors with exact positions; text columns beyond 2 GB a batch.
  connection->Query("SET errors_as_json = true");
  connection->Query("SET arrow_large_buffer_size = true");
  return connection;
}

}  // namespace quail::relational
