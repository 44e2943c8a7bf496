// Cost of TextStore::Intern: nanoseconds of thread time a call, for short texts, half of them seen
// before.
//
// usage: text_store_benchmark [THREADS]

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "text/text_store.h"

namespace {

constexpr int kTexts =
    500'000;  ///< a thread; every text is interned by two threads or twice by one

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::string> Texts(int set) {
  std::vector<std::string> texts;
  for (int i = 0; i < kTexts; ++i) {
    texts.push_back("a short review of product " + std::to_string(set) + "/" + std::to_string(i));
  }
  return texts;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<std::vector<std::string>> sets;
  for (int t = 0; t < threads; ++t) sets.push_back(Texts(t));
  quail::text::TextStore store;
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < seconds.size(); ++t) {
    workers.emplace_back([&, t] {
      const double start = ThreadSeconds();
      for (const std::string& text : sets[t]) store.Intern(text);
      for (const std::string& text : sets[(t + 1) % sets.size()]) store.Intern(text);
      seconds[t] = ThreadSeconds() - start;
    });
  }
  for (std::thread& worker : workers) worker.join();
  double total = 0;
  for (const double s : seconds) total += s;
  std::printf("%d threads, %zu distinct texts: %.0f ns a call\n", threads, store.size(),
              total * 1e9 / (2.0 * kTexts * threads));
  return 0;
}
