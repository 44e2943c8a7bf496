#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "relational/callback_guard.h"
#include "relational/duckdb_api.h"

namespace quail::relational {

/// Owns one handle of the C API and gives it to its destroy function. Not copyable, movable.
template <typename T, typename Result = void>
class DuckDbHandle {
 public:
  using Destroy = Result (*)(T*);

  explicit DuckDbHandle(Destroy destroy, T value = nullptr) : destroy_(destroy), value_(value) {}
  DuckDbHandle(DuckDbHandle&& other) noexcept
      : destroy_(other.destroy_), value_(std::exchange(other.value_, nullptr)) {}
  DuckDbHandle& operator=(DuckDbHandle&& other) noexcept {
    std::swap(destroy_, other.destroy_);
    std::swap(value_, other.value_);
    return *this;
  }
  ~DuckDbHandle() {
    if (value_ != nullptr) destroy_(&value_);
  }

  T get() const { return value_; }
  /// For functions that create: REQUIRES an empty handle.
  T* out() { return &value_; }

 private:
  Destroy destroy_;
  T value_;
};

/// An open database with its one connection, shared by the connection object, its result streams
/// and its functions.
struct DuckDbSession {
  explicit DuckDbSession(const DuckDbApi& duckdb)
      : api(duckdb), database(duckdb.close), connection(duckdb.disconnect) {}

  const DuckDbApi& api;
  DuckDbHandle<duckdb_database> database;
  DuckDbHandle<duckdb_connection>
      connection;  ///< after the database: disconnected before it closes
  CallbackGuard guard;
  std::atomic<bool> interrupted{false};

  /// Throws what DuckDB reports: Error{kInterrupted} after an Interrupt, the very exception of one
  /// of our functions, or DuckDB's own error. `sql` is the text that positions refer to; null: the
  /// error has none.
  [[noreturn]] void Throw(const char* duckdb_message, const std::string* sql) const;
  /// Takes an error object of the C API, destroys it, and throws as above if it holds an error.
  void Check(duckdb_error_data error, const std::string* sql) const;
  void ThrowIfInterrupted() const;
};

}  // namespace quail::relational
