#include "progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include "standard_streams.h"

namespace quail::cli {

std::string Describe(const Progress& progress) {
  std::string line =
      fmt::format("{}: {}/{} asks", progress.step, progress.asks_done, progress.asks_total);
  if (progress.rows_per_second > 0)
    line += fmt::format(", {:.0f} asks/s", progress.rows_per_second);
  if (progress.fresh_tokens_per_second > 0) {
    line += fmt::format(", {:.0f} fresh tokens/s", progress.fresh_tokens_per_second);
  }
  if (progress.observed_selectivity >= 0) {
    line += fmt::format(", {:.0f} % true", 100 * progress.observed_selectivity);
  }
  if (progress.seconds_left >= 0) line += fmt::format(", {:.0f} s left", progress.seconds_left);
  return line;
}

ProgressLine::ProgressLine(ProgressMode mode)
    : terminal_(::isatty(STDERR_FILENO) != 0),
      on_(mode == ProgressMode::kAlways || (mode == ProgressMode::kAuto && terminal_)) {}

void ProgressLine::Show(const Progress& progress) {
  if (!on_) return;
  if (terminal_) {
    PrintToErrors("\r\x1b[K{}", Describe(progress));
    shown_ = true;
  } else {
    PrintToErrors("{}\n", Describe(progress));
  }
}

void ProgressLine::Clear() {
  if (!shown_) return;
  PrintToErrors("\r\x1b[K");
  shown_ = false;
}

}  // namespace quail::cli
