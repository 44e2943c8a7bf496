#pragma once

#include <fstream>
#include <string>
#include <string_view>

#include "options.h"
#include "progress_line.h"
#include "quail/session.h"

namespace quail::cli {

/// What -v tells on standard error and --log keeps in a file, a line each.
class RunLog {
 public:
  /// Throws Error{kIo} where the file cannot be appended to.
  RunLog(const Options& options, ProgressLine& progress);

  bool on() const { return verbose_ || file_.is_open(); }
  void Tell(std::string_view text);
  /// To the file alone: a user sees these anyway.
  void Keep(std::string_view text);
  /// A statement has run; `report` is that of its AI calls, empty without any.
  void TellEnd(double seconds, const std::string& report);

 private:
  bool verbose_;
  std::ofstream file_;
  ProgressLine& progress_;
};

}  // namespace quail::cli
