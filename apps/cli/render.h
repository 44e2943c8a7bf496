#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "options.h"
#include "quail/error.h"
#include "quail/result.h"

namespace quail::cli {

/// How cells must come out of the session for a format.
CellForm FormOf(Format format);

/// Writes all rows of a result, pulled while they are written where the format allows: a statement
/// that fails before it has rows leaves nothing behind. Returns their number. REQUIRES: a format of
/// text.
std::uint64_t Render(Result& result, Format format, std::ostream& out);

}  // namespace quail::cli
