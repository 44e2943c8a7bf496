#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace quail::base {
namespace {

TEST(ThreadPoolTest, CallsEveryIndexOnce) {
  for (const std::size_t threads : {1u, 2u, 5u}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    std::vector<std::atomic<int>> calls(1'000);
    pool.ForEach(calls.size(), [&](std::size_t i) { ++calls[i]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPoolTest, EffectsAreVisibleAfterTheLoop) {
  ThreadPool pool(4);
  std::vector<std::size_t> squares(10'000);
  for (int round = 0; round < 20; ++round) {
    pool.ForEach(squares.size(), [&](std::size_t i) { squares[i] += i * i; });
  }
  for (std::size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], 20 * i * i);
}

TEST(ThreadPoolTest, ManyShortLoopsInARow) {
  ThreadPool pool(3);
  std::size_t total = 0;
  for (std::size_t round = 0; round < 2'000; ++round) {
    std::atomic<std::size_t> sum = 0;
    pool.ForEach(round % 4, [&](std::size_t i) { sum += i + 1; });
    total += sum;
  }
  EXPECT_EQ(total, 500u * (0 + 1 + 3 + 6));
}

TEST(ThreadPoolTest, UsesSeveralThreads) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> arrived = 0;
  // Each body waits for the other, which only two threads can satisfy.
  pool.ForEach(2, [&](std::size_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(ThreadPoolTest, RethrowsAndSkipsWhatHasNotBegun) {
  ThreadPool pool(1);
  std::size_t calls = 0;
  const auto body = [&](std::size_t i) {
    ++calls;
    if (i == 3) throw std::runtime_error("body 3");
  };
  EXPECT_THROW(pool.ForEach(100, body), std::runtime_error);
  EXPECT_EQ(calls, 4u);
}

TEST(ThreadPoolTest, IsUsableAfterAFailure) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.ForEach(64, [](std::size_t) { throw std::runtime_error("all"); }),
                 std::runtime_error);
    std::atomic<int> calls = 0;
    pool.ForEach(64, [&](std::size_t) { ++calls; });
    EXPECT_EQ(calls, 64);
  }
}

TEST(ThreadPoolTest, DefaultIsOneThreadPerUsableCore) {
  const ThreadPool pool;
  EXPECT_GE(pool.size(), 1u);
  EXPECT_LE(pool.size(), std::thread::hardware_concurrency());
}

}  // namespace
}  // namespace quail::base
