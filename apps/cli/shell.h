#pragma once

#include "interrupts.h"
#include "options.h"
#include "progress_line.h"
#include "quail/session.h"
#include "run_log.h"

namespace quail::cli {

/// Reads statements from standard input, line by line until `;`, and runs them. An error is shown
/// and does not end it. On a terminal Ctrl-C drops an unfinished statement, and so does the end of
/// the input; of other input the last statement needs no `;`. Returns the exit code. Throws
/// Error{kInterrupted} where a signal ends it.
int RunShell(Session& session, const Options& options, ProgressLine& progress,
             Interrupts& interrupts, RunLog& log);

}  // namespace quail::cli
