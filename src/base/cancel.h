#pragma once

#include <atomic>

namespace quail::base {

/// Set by any thread or a signal handler, looked at by whoever works. Stays set until Reset.
class CancelFlag {
 public:
  void Cancel() noexcept { set_.store(true, std::memory_order_relaxed); }
  void Reset() noexcept { set_.store(false, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
};

}  // namespace quail::base
