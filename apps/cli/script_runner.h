#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "options.h"
#include "progress_line.h"
#include "quail/session.h"
#include "run_log.h"

namespace quail::cli {

/// Runs statements of a script and writes their rows.
class ScriptRunner {
 public:
  ScriptRunner(Session& session, const Options& options, ProgressLine& progress, RunLog& log)
      : session_(session), options_(options), progress_(progress), log_(log) {}

  /// Statement after statement; those with rows are written to `out`, one after the other. Throws
  /// Error with a position in `script`. REQUIRES: a format of text.
  void Run(std::string_view script, std::ostream& out);
  /// One statement of it. `more_may_follow`: the model keeps what others may read.
  void RunStatement(std::string_view script, const Session::Statement& statement,
                    bool more_may_follow, std::ostream& out);
  /// As Run, with the rows of the one statement that has some as a Parquet or Arrow file. Throws
  /// Error{kUsage} before anything runs where it is not one.
  void WriteBinary(std::string_view script, const std::string& path);

  /// Whether a budget ended a statement early, so that undecided rows are among those written.
  bool stopped_by_budget() const { return stopped_by_budget_; }

 private:
  void RunOne(std::string_view script, const Session::Statement& statement, const RunOptions& run,
              std::ostream& out);
  template <typename Call>
  void Logged(const Session::Statement& statement, Call call);

  Session& session_;
  const Options& options_;
  ProgressLine& progress_;
  RunLog& log_;
  bool stopped_by_budget_ = false;
};

/// Throws Error{kIo} where WriteReport could not write.
void CheckReport(const Options& options);

/// Writes the report of the last statement where --report says. `failure`, if any, stands for a
/// report where the failure came before any statement.
void WriteReport(const Session* session, const Options& options, const Error* failure);

}  // namespace quail::cli
