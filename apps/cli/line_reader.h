#pragma once

#include <string>

#include "interrupts.h"

namespace quail::cli {

/// Standard input, line by line, with an ear for signals: what the C++ streams make of a signal
/// cannot be told from the end of the input.
class LineReader {
 public:
  enum class Event { kLine, kInterrupt, kEnd };

  explicit LineReader(const Interrupts& interrupts) : interrupts_(interrupts) {}

  /// Waits for a line (without its newline; the last one may have none), a signal or the end.
  Event Next(std::string& line);
  /// Forgets what was read and not yet given out.
  void Drop() { read_.clear(); }

 private:
  bool TakeLine(std::string& line);
  /// False at the end of the input.
  bool Read();

  const Interrupts& interrupts_;
  std::string read_;
  bool ended_ = false;
};

}  // namespace quail::cli
