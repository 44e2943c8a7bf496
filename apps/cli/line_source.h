#pragma once

#include <string>

namespace quail::cli {

/// Where the shell's lines come from.
class LineSource {
 public:
  enum class Event { kLine, kInterrupt, kEnd };

  virtual ~LineSource() = default;
  /// Waits for a line (without its newline; the last one may have none), a signal or the end.
  virtual Event Next(const std::string& prompt, std::string& line) = 0;
  /// Forgets what was read and not yet given out.
  virtual void Drop() = 0;
};

}  // namespace quail::cli
