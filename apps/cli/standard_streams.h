#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace quail::cli {

/// Puts something in the place of closed standard streams, which nothing can be read from or
/// written to: else the next file that is opened, such as the database, would be one.
void OpenStandardStreams();

/// Whether all that was written to standard output has gone there.
bool FlushOutput();

/// False where it could not be written: what standard error tells is not worth a statement.
bool WriteToErrors(std::string_view text);

template <typename... Arguments>
void PrintToErrors(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  WriteToErrors(fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace quail::cli
