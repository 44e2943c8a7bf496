#include "interrupts.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "quail/error.h"

namespace quail::cli {
namespace {

constexpr int kSignalled = 128;
constexpr int kMostPending = 2;

const std::function<void()>* stop_now = nullptr;
std::atomic<int> last_signal = 0;
std::atomic<int> pending_signals = 0;
int wakeup[2] = {-1, -1};

extern "C" void OnSignal(int signal) {
  const int kept_errno = errno;
  last_signal = signal;
  if (stop_now == nullptr || pending_signals >= kMostPending) ::_exit(kSignalled + signal);
  // Counted after it stops what runs: whoever takes it may then let things run again.
  (*stop_now)();
  ++pending_signals;
  const char byte = 0;
  // A full pipe is readable already.
  [[maybe_unused]] const auto written = ::write(wakeup[1], &byte, 1);
  errno = kept_errno;
}

void Handle(int signal) {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts(std::function<void()> stop) : stop_(std::move(stop)) {
  if (wakeup[0] < 0 && ::pipe2(wakeup, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorCode::kIo, "no pipe can be made");
  }
  Take();
  stop_now = &stop_;
  Handle(SIGINT);
  Handle(SIGTERM);
}

Interrupts::~Interrupts() { stop_now = nullptr; }

int Interrupts::descriptor() const { return wakeup[0]; }

bool Interrupts::pending() const { return pending_signals > 0; }

int Interrupts::Take() {
  char bytes[16];
  while (::read(wakeup[0], bytes, sizeof bytes) > 0) {
  }
  return pending_signals.exchange(0) > 0 ? last_signal.load() : 0;
}

int InterruptedExitCode() {
  const int signal = last_signal;
  return kSignalled + (signal == 0 ? SIGINT : signal);
}

}  // namespace quail::cli
