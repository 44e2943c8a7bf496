#include "relational/callback_guard.h"

namespace quail::relational {
namespace {

/// More than one thread fails at once, and a failed constant folding is tried again: a few suffice.
constexpr std::size_t kMostKept = 64;

std::string MessageOf(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return *error.what() == '\0' ? "unknown failure" : error.what();
  } catch (...) {
    return "unknown failure";
  }
}

}  // namespace

std::string CallbackGuard::Run(const std::function<void()>& body) noexcept {
  try {
    body();
    return "";
  } catch (...) {
    const std::exception_ptr exception = std::current_exception();
    std::string message = MessageOf(exception);
    const std::lock_guard lock(mutex_);
    if (kept_.size() < kMostKept) kept_.push_back({message, exception});
    return message;
  }
}

void CallbackGuard::Rethrow(std::string_view failure) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : kept_) {
    if (failure.find(kept.message) != failure.npos) std::rethrow_exception(kept.exception);
  }
}

void CallbackGuard::Clear() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
}

}  // namespace quail::relational
