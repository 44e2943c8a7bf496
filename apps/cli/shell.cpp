#include "shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <iostream>
#include <string>
#include <utility>

#include "line_reader.h"
#include "quail/machine.h"
#include "script_runner.h"

namespace quail::cli {
namespace {

constexpr std::string_view kHelp =
    ".help             this text\n"
    ".tables           tables and views\n"
    ".schema [TABLE]   how they were made\n"
    ".dialect NAME     snowflake or bigquery\n"
    ".explain QUERY    the plan of a query\n"
    ".report           the run report of the last statement with AI calls\n"
    ".quit             end\n"
    "Everything else is SQL and ends with a semicolon. Ctrl-C cancels a running statement and "
    "drops\n"
    "an unfinished one.\n";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

/// Reads and runs until the end of the input.
class Shell {
 public:
  Shell(Session& session, const Options& options, ProgressLine& progress, Interrupts& interrupts)
      : session_(session),
        options_(options),
        progress_(progress),
        interrupts_(interrupts),
        reader_(interrupts),
        interactive_(::isatty(STDIN_FILENO) != 0) {}

  /// Whether a statement of a script on standard input failed.
  bool failed() const { return failed_ && !interactive_; }

  void Run() {
    if (interactive_) {
      fmt::print(stderr, "quail {}. Statements end with a semicolon; .help for more.\n", Version());
    }
    std::string line;
    while (!quit_) {
      Prompt();
      switch (reader_.Next(line)) {
        case LineReader::Event::kLine:
          Take(line);
          break;
        case LineReader::Event::kInterrupt:
          HeedSignals();
          buffer_.clear();
          fmt::print(stderr, "\n");
          break;
        case LineReader::Event::kEnd:
          return TakeEnd();
      }
    }
  }

 private:
  void Prompt() const {
    if (!interactive_) return;
    fmt::print(stderr, "{}", Trim(buffer_).empty() ? "quail> " : "  ...> ");
  }

  /// SIGTERM ends a shell, Ctrl-C only a script; what was typed or pasted ahead is dropped.
  void HeedSignals() {
    const int signal = interrupts_.Take();
    if (signal == 0) return;
    session_.Resume();
    if (signal == SIGTERM || !interactive_) throw Error(ErrorCode::kInterrupted, "interrupted");
    reader_.Drop();
  }

  /// What a user did not finish is dropped; a script's last statement needs no semicolon.
  void TakeEnd() {
    if (interactive_) fmt::print(stderr, "\n");
    if (Trim(buffer_).empty()) return;
    if (!interactive_) return RunScript(buffer_);
    fmt::print(stderr, "the unfinished statement was dropped: it has no semicolon\n");
  }

  void Take(const std::string& line) {
    if (Trim(buffer_).empty() && Trim(line).starts_with('.')) {
      RunDotCommand(Trim(line));
      return;
    }
    buffer_ += line + '\n';
    if (!Trim(line).ends_with(';')) return;
    const std::string script = std::exchange(buffer_, "");
    if (!Complete(script)) {
      buffer_ = script;
      return;
    }
    RunScript(script);
  }

  /// Whether no string or comment is open at the end.
  bool Complete(const std::string& script) const {
    bool complete = true;
    Guarded([&] { session_.Split(script); }, [&](const Error&) { complete = false; });
    return complete;
  }

  void RunDotCommand(std::string_view command) {
    const std::size_t space = command.find(' ');
    const std::string_view name = command.substr(0, space);
    const std::string argument(space == std::string_view::npos ? "" : Trim(command.substr(space)));
    if (name == ".help") {
      std::cout << kHelp;
    } else if (name == ".quit" || name == ".exit") {
      quit_ = true;
    } else if (name == ".tables") {
      RunScript(
          "SELECT table_name AS name, table_type AS type FROM information_schema.tables "
          "ORDER BY ALL");
    } else if (name == ".schema") {
      ShowSchema(argument);
    } else if (name == ".dialect") {
      ChooseDialect(argument);
    } else if (name == ".explain" && !argument.empty()) {
      RunScript("EXPLAIN " + argument);
    } else if (name == ".report") {
      std::cout << session_.ReportJson() << '\n';
    } else {
      Fail(fmt::format("no command {}; .help lists them", command));
    }
    std::cout.flush();
  }

  void Fail(const std::string& message) {
    fmt::print(stderr, "error: {}\n", message);
    failed_ = true;
  }

  void ShowSchema(const std::string& table) {
    const std::string all =
        "SELECT sql FROM (SELECT table_name AS name, sql FROM duckdb_tables() UNION ALL "
        "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal)";
    if (table.empty()) return RunScript(all);
    const std::string sql = all + " WHERE lower(name) = lower('" + Doubled(table) + "')";
    if (session_.Run(sql, {sql, 0}, {})->Drain() > 0) return RunScript(sql);
    Fail(fmt::format("no table or view '{}' (views with AI calls are not listed)", table));
  }

  void ChooseDialect(const std::string& name) {
    if (const auto dialect = FindDialect(name)) return session_.SetDialect(*dialect);
    Fail(fmt::format("no dialect '{}': .dialect snowflake or .dialect bigquery", name));
  }

  static std::string Doubled(const std::string& text) {
    std::string doubled;
    for (const char c : text) {
      if (c == '\'') doubled += c;
      doubled += c;
    }
    return doubled;
  }

  void RunScript(const std::string& script) {
    ScriptRunner runner(session_, options_, progress_);
    Guarded([&] { runner.Run(script, std::cout); },
            [&](const Error& error) {
              progress_.Clear();
              std::cout.flush();
              HeedSignals();
              fmt::print(stderr, "{}\n", quail::Describe(error, script));
              failed_ = true;
            });
    HeedSignals();
  }

  template <typename Call, typename OnError>
  static void Guarded(Call call, OnError on_error) {
    try {
      call();
    } catch (const Error& error) {
      on_error(error);
    }
  }

  Session& session_;
  const Options& options_;
  ProgressLine& progress_;
  Interrupts& interrupts_;
  LineReader reader_;
  bool interactive_;
  bool quit_ = false;
  bool failed_ = false;
  std::string buffer_;
};

}  // namespace

int RunShell(Session& session, const Options& options, ProgressLine& progress,
             Interrupts& interrupts) {
  Shell shell(session, options, progress, interrupts);
  shell.Run();
  return shell.failed() ? 1 : 0;
}

}  // namespace quail::cli
