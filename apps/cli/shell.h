#pragma once

#include "options.h"
#include "progress_line.h"
#include "quail/session.h"

namespace quail::cli {

/// Reads statements from standard input, line by line until `;`, and runs them. An error is shown
/// and does not end it. Returns the exit code.
int RunShell(Session& session, const Options& options, ProgressLine& progress);

}  // namespace quail::cli
