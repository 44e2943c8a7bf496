#pragma once

#include <string>
#include <string_view>

#include "quail/error.h"

namespace quail::base {

/// Line and column (1-based, columns in code points; an invalid byte counts as one) of a byte
/// offset, which is clamped to the text's length.
TextPosition Locate(std::string_view text, std::size_t offset);

/// "error: MESSAGE" and, where the error has a position, "line L, column C", the source line and a
/// caret under the place. Ends without a newline.
std::string Describe(const Error& error, std::string_view text);

}  // namespace quail::base
