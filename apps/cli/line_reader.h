#pragma once

#include <string>

#include "interrupts.h"
#include "line_source.h"

namespace quail::cli {

/// The text of a script without the mark that its first character may be: places count from behind.
std::string WithoutByteOrderMark(std::string text);

/// Standard input, line by line, with an ear for signals: what the C++ streams make of a signal
/// cannot be told from the end of the input.
class LineReader : public LineSource {
 public:
  /// `prompts`: on standard error.
  LineReader(const Interrupts& interrupts, bool prompts)
      : interrupts_(interrupts), prompts_(prompts) {}

  Event Next(const std::string& prompt, std::string& line) override;
  void Drop() override { read_.clear(); }

 private:
  bool TakeLine(std::string& line);
  /// False at the end of the input.
  bool Read();

  const Interrupts& interrupts_;
  bool prompts_;
  std::string read_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace quail::cli
