#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quail::base {

/// A fixed set of threads for fork-join loops. One loop at a time; not reentrant from inside a loop
/// body.
class ThreadPool {
 public:
  /// `threads` counts the caller, who works too; 0 means one per core that this process may use.
  /// Throws Error{kUsage} for more than the system or sense allows.
  explicit ThreadPool(std::size_t threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  /// Calls body(i) for every i in [0, count), each once, on any thread; returns when all are done.
  /// The first exception thrown by a body is rethrown here after the others have finished; indices
  /// not yet begun are then skipped.
  void ForEach(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  struct Loop;

  void Work();
  void Stop();
  static void RunLoop(Loop& loop);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  Loop* loop_ = nullptr;
  std::size_t generation_ = 0;
  std::size_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace quail::base
