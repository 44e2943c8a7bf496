#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quail/session.h"

namespace quail::cli {

/// What a word of the shell can become: dot commands and their arguments, tables, columns and
/// functions of the session, at most a screenful. `before` is the line up to the cursor, which ends
/// in `word`. Nothing where the session cannot tell.
std::vector<std::string> CompletionsOf(Session& session, std::string_view before,
                                       std::string_view word);

}  // namespace quail::cli
