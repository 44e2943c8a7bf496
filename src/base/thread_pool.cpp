#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <system_error>

#include "base/check.h"
#include "quail/error.h"

namespace quail::base {
namespace {

/// Beyond what any one computer has.
constexpr std::size_t kMostThreads = 1024;

std::size_t UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

}  // namespace

struct ThreadPool::Loop {
  std::size_t count;
  const std::function<void(std::size_t)>& body;
  std::atomic<std::size_t> next{0};
  std::mutex mutex{};
  std::exception_ptr failure{};
};

ThreadPool::ThreadPool(std::size_t threads) {
  const std::size_t total = threads == 0 ? UsableCores() : threads;
  if (total > kMostThreads) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{} threads are too many: at most {}", total, kMostThreads));
  }
  try {
    for (std::size_t i = 1; i < total; ++i) workers_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    const std::size_t begun = workers_.size();
    Stop();
    throw Error(ErrorCode::kUsage,
                fmt::format("the system allows {} threads here, not {}", begun + 1, total));
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ForEach(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (count == 0) return;
  Loop loop{count, body};
  {
    const std::lock_guard lock(mutex_);
    QUAIL_CHECK(loop_ == nullptr);
    loop_ = &loop;
    busy_ = workers_.size();
    ++generation_;
  }
  wake_.notify_all();
  RunLoop(loop);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return busy_ == 0; });
  loop_ = nullptr;
  if (loop.failure) std::rethrow_exception(loop.failure);
}

void ThreadPool::Work() {
  std::size_t seen = 0;
  for (;;) {
    Loop* loop = nullptr;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      loop = loop_;
    }
    RunLoop(*loop);
    {
      const std::lock_guard lock(mutex_);
      --busy_;
    }
    finished_.notify_one();
  }
}

void ThreadPool::RunLoop(Loop& loop) {
  for (;;) {
    const std::size_t i = loop.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= loop.count) return;
    try {
      loop.body(i);
    } catch (...) {
      loop.next.store(loop.count, std::memory_order_relaxed);
      const std::lock_guard lock(loop.mutex);
      if (!loop.failure) loop.failure = std::current_exception();
    }
  }
}

}  // namespace quail::base
