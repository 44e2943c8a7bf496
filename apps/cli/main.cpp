#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <new>

#include "options.h"
#include "progress_line.h"
#include "quail/machine.h"
#include "quail/session.h"
#include "script_runner.h"
#include "shell.h"

namespace quail::cli {
namespace {

constexpr int kBudgetCode = 4;
constexpr int kInterruptedCode = 130;
/// Of the published baseline (docs/benchmarks.md).
constexpr std::int32_t kBaselineStepTokens = 25'305;

Session* running_session = nullptr;
volatile std::sig_atomic_t interrupts = 0;

/// The first Ctrl-C stops the statement, a second one before that has happened the program.
extern "C" void OnInterrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 2 || running_session == nullptr) ::_exit(kInterruptedCode);
  running_session->Interrupt();
}

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

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
      return kInterruptedCode;
    case ErrorCode::kSyntax:
    case ErrorCode::kBind:
    case ErrorCode::kUnsupported:
    case ErrorCode::kQuery:
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return 1;
  }
  return 1;
}

int RunScriptOption(Session& session, const Options& options, ProgressLine& progress) {
  ScriptRunner runner(session, options, progress);
  if (options.output.empty() || options.format == Format::kParquet) {
    runner.Run(*options.script, std::cout);
    return 0;
  }
  std::ofstream file(options.output, std::ios::binary);
  if (!file) throw Error(ErrorCode::kIo, fmt::format("cannot write '{}'", options.output));
  runner.Run(*options.script, file);
  return 0;
}

/// Opens the session and runs what the options say; the report is written whatever happens.
int RunQueries(Options& options) {
  ProgressLine progress(options.progress);
  options.config.on_progress = [&](const Progress& state) { progress.Show(state); };
  options.config.on_notice = [&](const std::string& notice) {
    progress.Clear();
    if (!options.quiet) fmt::print(stderr, "notice: {}\n", notice);
  };
  std::unique_ptr<Session> session;
  try {
    session = Session::Open(options.config);
    for (const auto& [name, path] : options.tables) session->RegisterFile(name, path);
    running_session = session.get();
    CatchInterrupts();
    int code = options.script ? RunScriptOption(*session, options, progress)
                              : RunShell(*session, options, progress);
    running_session = nullptr;
    if (code == 0 && session->StoppedByBudget()) code = kBudgetCode;
    WriteReport(session.get(), options, nullptr);
    return code;
  } catch (const Error& error) {
    running_session = nullptr;
    progress.Clear();
    std::cout.flush();
    fmt::print(stderr, "{}\n", quail::Describe(error, options.script.value_or("")));
    WriteReport(session.get(), options, &error);
    return ExitCodeOf(error);
  }
}

int ListModels() {
  for (const NamedModel& model : NamedModels()) {
    fmt::print(
        "{:<16} {}\n{:<16} {}\n", model.name, model.summary, "",
        model.path.empty() ? "not on this computer: quail download " + model.name : model.path);
  }
  return 0;
}

int ShowCalibration(const Options& options) {
  const Calibration rates = Calibrate(options.config.threads);
  fmt::print("{} ({})\n", rates.device, rates.source);
  fmt::print("matrix products, f32   {:8.1f} GFLOP/s\n", rates.f32_flops_per_second / 1e9);
  if (rates.bf16_flops_per_second > 0) {
    fmt::print("matrix products, bf16  {:8.1f} GFLOP/s\n", rates.bf16_flops_per_second / 1e9);
  }
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
  generate.on_table = [](std::string_view table) { fmt::print(stderr, "writing {}\n", table); };
  quailb::GenerateSuite(generate);
  return 0;
}

int RunBench(const Options& options) {
  quailb::SuiteRunOptions suite = options.suite;
  const bool baseline = suite.config.baseline;
  suite.config = options.config;
  suite.config.baseline = baseline;
  if (baseline && suite.config.chunk_tokens == 0) suite.config.chunk_tokens = kBaselineStepTokens;
  suite.on_line = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  quailb::RunSuite(suite);
  return 0;
}

int Run(int count, const char* const* arguments) {
  Options options;
  try {
    if (const auto exit = ReadOptions(count, arguments, options)) {
      std::cout << exit->output;
      std::cerr << exit->error;
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
    fmt::print(stderr, "error: {}\n", error.what());
    return ExitCodeOf(error);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return 3;
  }
  return 2;
}

}  // namespace
}  // namespace quail::cli

int main(int count, char** arguments) { return quail::cli::Run(count, arguments); }
