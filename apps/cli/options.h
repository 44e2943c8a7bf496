#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quail/config.h"
#include "quail/session.h"
#include "quailb/generate.h"
#include "quailb/run.h"

namespace quail::cli {

enum class Format { kTable, kCsv, kTsv, kJson, kJsonLines, kMarkdown, kParquet, kArrow };
/// Whether a format is no text, and written by the session.
inline bool IsBinary(Format format) {
  return format == Format::kParquet || format == Format::kArrow;
}
enum class ProgressMode { kAuto, kAlways, kNever };
enum class Command { kQuery, kModels, kDownload, kCalibrate, kDoctor, kBenchGenerate, kBenchRun };

/// The command line, read.
struct Options {
  Command command = Command::kQuery;
  Config config;
  std::optional<std::string> script;                        ///< of -c or -f; nothing: the shell
  std::vector<std::pair<std::string, std::string>> tables;  ///< name, path
  Format format = Format::kCsv;
  std::string output;  ///< empty: standard output
  std::string notice;  ///< what the user is to be told of how these were read; empty: nothing
  std::string report;  ///< empty: none; "-": standard error
  RunOptions::Explain explain = RunOptions::Explain::kNo;
  ProgressMode progress = ProgressMode::kAuto;
  bool quiet = false;
  bool verbose = false;
  std::string log;  ///< empty: none
  std::string download;
  quailb::GenerateOptions generate;
  quailb::SuiteRunOptions suite;
};

/// What ends the program at once: help, version, a wrong option.
struct Exit {
  int code = 0;
  std::string output;
  std::string error;
};

/// "snowflake or bigquery": what -d takes.
std::string DialectNames();

/// Reads the arguments. Returns an Exit where nothing is to be run. Throws Error{kUsage | kIo}.
std::optional<Exit> ReadOptions(int count, const char* const* arguments, Options& options);

}  // namespace quail::cli
