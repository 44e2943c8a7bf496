#pragma once

#include <string_view>

#include "quail/config.h"
#include "quail/error.h"
#include "quail/session.h"

namespace quail::session {

/// An error of a statement with a place in the script: its own; else that of the first name or text
/// of the statement that its message quotes; else where the statement begins. What no text can be
/// blamed for (model, device, memory, an interrupt) stays without one.
Error WithPlace(const Error& error, std::string_view script, const Session::Statement& statement,
                Dialect dialect);

}  // namespace quail::session
