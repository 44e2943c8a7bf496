#pragma once

#include "session/session_state.h"

namespace quail::session {

/// quail_errors(), quail_functions() and quail_settings() on the session's connection. `state`
/// outlives the connection.
void RegisterTableFunctions(SessionState& state);

}  // namespace quail::session
