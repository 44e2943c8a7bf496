#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <new>
#include <optional>

#include "interrupts.h"
#include "options.h"
#include "output_file.h"
#include "progress_line.h"
#include "quail/machine.h"
#include "quail/session.h"
#include "run_log.h"
#include "script_runner.h"
#include "shell.h"
#include "standard_streams.h"

namespace quail::cli {
namespace {

constexpr int kBudgetCode = 4;
/// Of the published baseline (docs/benchmarks.md).
constexpr std::int32_t kBaselineStepTokens = 25'305;

int ExitCodeOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kModel:
    case ErrorCode::kDevice:
    case ErrorCode::kOutOfMemory:
      return 3;
    case ErrorCode::kBudget:
      return kBudgetCode;
    case ErrorCode::kInterrupted:
      return InterruptedExitCode();
    case ErrorCode::kSyntax:
    case ErrorCode::kUnfinished:
    case ErrorCode::kBind:
    case ErrorCode::kUnsupported:
    case ErrorCode::kQuery:
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return 1;
  }
  return 1;
}

/// A file that an option names and that cannot be opened is wrong usage, as a wrong option is: it
/// is told before a statement runs.
template <typename Call>
auto Opening(Call call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    throw Error(ErrorCode::kUsage, error.what());
  }
}

/// Returns the exit code.
int RunScriptOption(Session& session, const Options& options, ProgressLine& progress, RunLog& log) {
  ScriptRunner runner(session, options, progress, log);
  if (options.output.empty()) {
    runner.Run(*options.script, std::cout);
    return runner.stopped_by_budget() ? kBudgetCode : 0;
  }
  const auto file = Opening([&] { return OutputFile::Open(options.output); });
  if (IsBinary(options.format)) {
    runner.WriteBinary(*options.script, file->path());
  } else {
    runner.Run(*options.script, file->stream());
  }
  if (runner.stopped_by_budget() && file->replaces()) {
    throw Error(
        ErrorCode::kBudget,
        fmt::format("a budget left rows undecided, so '{}' was left as it was", options.output));
  }
  file->Finish();
  return runner.stopped_by_budget() ? kBudgetCode : 0;
}

/// What the options say, in an open session. Returns the exit code.
int RunStatements(Session& session, const Options& options, ProgressLine& progress, RunLog& log) {
  Opening([&] {
    for (const auto& [name, path] : options.tables) session.RegisterFile(name, path);
  });
  Interrupts interrupts([&session] { session.Interrupt(); });
  if (options.script) return RunScriptOption(session, options, progress, log);
  const int code = RunShell(session, options, progress, interrupts, log);
  return code == 0 && session.StoppedByBudget() ? kBudgetCode : code;
}

/// Opens the session and runs what the options say; the report is written whatever happens.
int RunQueries(Options& options) {
  ProgressLine progress(options.progress);
  const auto opened_log = Opening([&] { return std::make_unique<RunLog>(options, progress); });
  RunLog& log = *opened_log;
  options.config.on_progress = [&](const Progress& state) { progress.Show(state); };
  options.config.on_notice = [&](const std::string& notice) {
    progress.Clear();
    log.Keep("notice: " + notice);
    if (!options.quiet) PrintToErrors("notice: {}\n", notice);
  };
  if (!options.notice.empty()) options.config.on_notice(options.notice);
  Opening([&] { CheckReport(options); });
  std::unique_ptr<Session> session;
  std::optional<Error> failure;
  int code = 0;
  try {
    session = Opening([&] { return Session::Open(options.config); });
    code = RunStatements(*session, options, progress, log);
  } catch (const Error& error) {
    progress.Clear();
    std::cout.flush();
    const std::string text = quail::Describe(error, options.script.value_or(""));
    log.Keep(text);
    PrintToErrors("{}\n", text);
    failure = error;
    code = ExitCodeOf(error);
  }
  WriteReport(session.get(), options, failure ? &*failure : nullptr);
  return code;
}

int ListModels() {
  for (const NamedModel& model : NamedModels()) {
    fmt::print(
        "{:<16} {}\n{:<16} {}\n", model.name, model.summary, "",
        model.path.empty() ? "not on this computer: quail download " + model.name : model.path);
  }
  fmt::print("\nShapes for --random-weights, without files: {}\n", fmt::join(NamedShapes(), ", "));
  return 0;
}

int ShowCalibration(const Options& options) {
  const Calibration rates = Calibrate(options.config.threads);
  fmt::print("{} ({})\n", rates.device, rates.source);
  fmt::print("matrix products, f32   {:8.1f} GFLOP/s\n", rates.f32_flops_per_second / 1e9);
  if (rates.bf16_flops_per_second > 0) {
    fmt::print("matrix products, bf16  {:8.1f} GFLOP/s\n", rates.bf16_flops_per_second / 1e9);
  }
  fmt::print("matrix products, int8  {:8.1f} GFLOP/s\n", rates.int8_flops_per_second / 1e9);
  fmt::print("memory, read           {:8.1f} GB/s\n", rates.bytes_per_second / 1e9);
  fmt::print("kept in {}\n", rates.path);
  return 0;
}

int ShowFindings(const Options& options) {
  bool usable = true;
  for (const Finding& finding : Examine(options.config)) {
    fmt::print("{:<4} {:<10} {}\n", finding.usable ? "ok" : "--", finding.subject, finding.text);
    usable &= finding.usable || finding.subject == "gpu";
  }
  return usable ? 0 : 3;
}

int GenerateBench(const Options& options) {
  quailb::GenerateOptions generate = options.generate;
  generate.duckdb_library = options.config.duckdb_library;
  generate.on_table = [](std::string_view table) { PrintToErrors("writing {}\n", table); };
  const Interrupts interrupts([] {});
  generate.interrupted = [&] { return interrupts.pending(); };
  quailb::GenerateSuite(generate);
  return 0;
}

int RunBench(const Options& options) {
  quailb::SuiteRunOptions suite = options.suite;
  const bool baseline = suite.config.baseline;
  suite.config = options.config;
  suite.config.baseline = baseline;
  if (baseline && suite.config.chunk_tokens == 0) suite.config.chunk_tokens = kBaselineStepTokens;
  suite.on_line = [](std::string_view line) { PrintToErrors("{}\n", line); };
  quailb::RunSuite(suite);
  return 0;
}

int Run(int count, const char* const* arguments) {
  Options options;
  try {
    if (const auto exit = ReadOptions(count, arguments, options)) {
      std::cout << exit->output;
      WriteToErrors(exit->error);
      return exit->code;
    }
    switch (options.command) {
      case Command::kQuery:
        return RunQueries(options);
      case Command::kModels:
        return ListModels();
      case Command::kDownload:
        fmt::print("{}\n", DownloadModel(options.download));
        return 0;
      case Command::kCalibrate:
        return ShowCalibration(options);
      case Command::kDoctor:
        return ShowFindings(options);
      case Command::kBenchGenerate:
        return GenerateBench(options);
      case Command::kBenchRun:
        return RunBench(options);
    }
  } catch (const Error& error) {
    PrintToErrors("error: {}\n", error.what());
    return ExitCodeOf(error);
  } catch (const std::bad_alloc&) {
    PrintToErrors("error: out of memory\n");
    return 3;
  }
  return 2;
}

}  // namespace
}  // namespace quail::cli

int main(int count, char** arguments) {
  quail::cli::OpenStandardStreams();
  const int code = quail::cli::Run(count, arguments);
  if (quail::cli::FlushOutput() || code != 0) return code;
  quail::cli::WriteToErrors("error: standard output cannot be written\n");
  return 1;
}
