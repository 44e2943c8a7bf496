#pragma once

#include <string>

#include "options.h"
#include "quail/config.h"

namespace quail::cli {

/// The one line on standard error that tells how a statement gets on: rewritten in place on a
/// terminal.
class ProgressLine {
 public:
  explicit ProgressLine(ProgressMode mode);

  void Show(const Progress& progress);
  /// Takes the line away, so that something else can be printed.
  void Clear();

 private:
  bool terminal_;
  bool on_;
  bool shown_ = false;
};

/// "filter reviews: 120/300 asks, 85 rows/s, 2,310 tokens/s, 41 % true, 2 s left".
std::string Describe(const Progress& progress);

}  // namespace quail::cli
