#pragma once

#include <functional>

namespace quail::cli {

/// While it lives, SIGINT (Ctrl-C) and SIGTERM stop what runs instead of the program: each calls
/// `stop`, and one that comes while two are not taken yet ends the program at once. One at a time.
class Interrupts {
 public:
  /// `stop` runs in the signal handler and must be fit for it. Throws Error{kIo}.
  explicit Interrupts(std::function<void()> stop);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable, for poll(), once a signal has come that was not taken.
  int descriptor() const;
  /// The signal that came last; 0: none since the last call.
  int Take();
  /// Whether one has come that was not taken.
  bool pending() const;

 private:
  std::function<void()> stop_;
};

/// 128 + the signal that came last, as shells count; that of SIGINT where none came.
int InterruptedExitCode();

}  // namespace quail::cli
