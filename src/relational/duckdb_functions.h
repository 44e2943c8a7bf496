#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "relational/connection.h"
#include "relational/duckdb_session.h"

namespace quail::relational {

/// A registered function, called through a slot: DuckDB cannot take a function back, so registering
/// one again fills the slot anew. The session owns the database that keeps the slot.
template <typename Function>
class FunctionSlot {
 public:
  FunctionSlot(DuckDbSession& owner, Function function)
      : session(owner), function_(std::make_shared<const Function>(std::move(function))) {}

  std::shared_ptr<const Function> function() const {
    const std::lock_guard lock(mutex_);
    return function_;
  }
  void Replace(Function function) {
    auto fresh = std::make_shared<const Function>(std::move(function));
    const std::lock_guard lock(mutex_);
    function_ = std::move(fresh);
  }

  DuckDbSession& session;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Function> function_;
};

using ScalarSlot = FunctionSlot<ScalarFunction>;
using TableSlot = FunctionSlot<TableFunction>;

/// Makes DuckDB call the slot's function; DuckDB keeps the slot until the database closes. Throws
/// Error{kQuery} when DuckDB refuses.
void RegisterScalarSlot(const std::shared_ptr<ScalarSlot>& slot);
void RegisterTableSlot(const std::shared_ptr<TableSlot>& slot);

}  // namespace quail::relational
