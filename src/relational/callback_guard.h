#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace quail::relational {

/// Carries exceptions past DuckDB: what our functions throw inside its threads is kept here while
/// DuckDB sees only the message, and is thrown again where the statement's failure comes out. Any
/// thread.
class CallbackGuard {
 public:
  /// Runs `body`; an exception of it is kept and its message returned. Empty when nothing was
  /// thrown.
  std::string Run(const std::function<void()>& body) noexcept;

  /// Throws the kept exception whose message `failure` contains; returns when there is none.
  void Rethrow(std::string_view failure) const;

  void Clear();

 private:
  struct Kept {
    std::string message;
    std::exception_ptr exception;
  };
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;
};

}  // namespace quail::relational
