#include "shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "completion.h"
#include "line_editor.h"
#include "line_reader.h"
#include "quail/machine.h"
#include "script_runner.h"
#include "standard_streams.h"

namespace quail::cli {
namespace {

/// {}: the dialects.
constexpr std::string_view kHelp =
    ".help             this text\n"
    ".tables           tables and views\n"
    ".schema [TABLE]   how they were made\n"
    ".model [NAME]     the model that answers; loads another one\n"
    ".dialect [NAME]   the dialect of what is typed; {} from here on\n"
    ".explain QUERY    the plan of a query\n"
    ".report           the run report of the last statement with AI calls\n"
    ".timer [on|off]   whether the time that each statement takes is told\n"
    ".quit             end\n"
    "Everything else is SQL and ends with a semicolon. Ctrl-C cancels a running statement and "
    "drops\n"
    "an unfinished one; Tab completes names.\n";

/// Those that need it with their schema and database.
constexpr std::string_view kTables =
    "SELECT CASE WHEN table_catalog NOT IN (current_database(), 'temp') THEN table_catalog || '.' "
    "ELSE '' END || CASE WHEN table_catalog = 'temp' OR (table_catalog = current_database() AND "
    "table_schema = current_schema()) THEN '' ELSE table_schema || '.' END || table_name AS name, "
    "table_type AS type FROM information_schema.tables ORDER BY name";

constexpr std::string_view kWithoutArgument[] = {".help", ".quit", ".exit", ".tables", ".report"};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

/// Whether a line can end a statement: at most comments follow its semicolon.
bool MayEndStatement(std::string_view line) {
  for (std::size_t at = line.find(';'); at != line.npos; at = line.find(';', at + 1)) {
    const std::string_view rest = Trim(line.substr(at + 1));
    if (rest.empty() || std::string_view("-/#;").find(rest.front()) != rest.npos) return true;
  }
  return false;
}

/// Reads and runs until the end of the input.
class Shell {
 public:
  Shell(Session& session, const Options& options, ProgressLine& progress, Interrupts& interrupts,
        RunLog& log)
      : session_(session),
        options_(options),
        progress_(progress),
        interrupts_(interrupts),
        log_(log),
        dialect_(options.config.dialect),
        interactive_(::isatty(STDIN_FILENO) != 0),
        lines_(OpenLines()) {}

  /// Whether a statement of a script on standard input failed.
  bool failed() const { return failed_ && !interactive_; }

  void Run() {
    if (interactive_) {
      PrintToErrors("quail {}. Statements end with a semicolon; .help for more.\n", Version());
    }
    std::string line;
    while (!quit_) {
      switch (lines_->Next(begun_ ? "  ...> " : "quail> ", line)) {
        case LineSource::Event::kLine:
          Take(line);
          break;
        case LineSource::Event::kInterrupt:
          HeedSignals();
          TakeBuffer();
          PrintToErrors("\n");
          break;
        case LineSource::Event::kEnd:
          return TakeEnd();
      }
    }
  }

 private:
  std::unique_ptr<LineSource> OpenLines() {
    const char* terminal = std::getenv("TERM");
    const bool edits = interactive_ && ::isatty(STDERR_FILENO) != 0 && terminal != nullptr &&
                       std::string_view(terminal) != "dumb";
    if (!edits) return std::make_unique<LineReader>(interrupts_, interactive_);
    return std::make_unique<LineEditor>(interrupts_, HistoryPath(),
                                        [this](std::string_view before, std::string_view word) {
                                          return CompletionsOf(session_, before, word);
                                        });
  }

  /// SIGTERM ends a shell, Ctrl-C only a script; what was typed or pasted ahead is dropped. Returns
  /// whether there was one.
  bool HeedSignals() {
    const int signal = interrupts_.Take();
    if (signal == 0) return false;
    session_.Resume();
    if (signal == SIGTERM || !interactive_) throw Error(ErrorCode::kInterrupted, "interrupted");
    lines_->Drop();
    return true;
  }

  /// What a user did not finish is dropped; a script's last statement needs no semicolon.
  void TakeEnd() {
    if (interactive_) PrintToErrors("\n");
    if (!begun_) return;
    if (!interactive_) return RunScript(buffer_);
    PrintToErrors("the unfinished statement was dropped: it has no semicolon\n");
  }

  void Take(const std::string& line) {
    if (!begun_ && Trim(line).starts_with('.')) {
      TakeBuffer();
      RunDotCommand(Trim(line));
      return;
    }
    buffer_ += line + '\n';
    // A text is not read again line by line once a statement has begun; an open comment may end.
    if (!begun_ || line.find("*/") != line.npos) begun_ = HasBegun();
    if (MayEndStatement(line) && IsComplete()) RunScript(TakeBuffer());
  }

  std::string TakeBuffer() {
    begun_ = false;
    return std::exchange(buffer_, "");
  }

  /// Whether more than comments is in the buffer. What is wrong with it, running it will tell.
  bool HasBegun() const {
    bool begun = true;
    Guarded([&] { begun = !session_.Split(buffer_).empty(); }, [](const Error&) {});
    return begun;
  }

  /// Whether the statements of the buffer have ended: then a word behind them begins another one.
  bool IsComplete() const {
    bool complete = true;
    Guarded(
        [&] {
          const std::size_t begun = session_.Split(buffer_).size();
          complete = session_.Split(buffer_ + "\nx").size() > begun;
        },
        [&](const Error& error) { complete = error.code() != ErrorCode::kUnfinished; });
    return complete;
  }

  void RunDotCommand(std::string_view command) {
    const std::size_t space = command.find_first_of(" \t");
    const std::string_view name = command.substr(0, space);
    const std::string argument(space == std::string_view::npos ? "" : Trim(command.substr(space)));
    if (!argument.empty() &&
        std::ranges::find(kWithoutArgument, name) != std::end(kWithoutArgument)) {
      return Fail(fmt::format("{} takes no argument, not '{}'", name, argument));
    }
    if (name == ".help") {
      std::cout << fmt::format(kHelp, DialectNames());
    } else if (name == ".quit" || name == ".exit") {
      quit_ = true;
    } else if (name == ".tables") {
      RunScript(std::string(kTables));
    } else if (name == ".schema") {
      ShowSchema(argument);
    } else if (name == ".dialect") {
      ChooseDialect(argument);
    } else if (name == ".model") {
      Attempt([&] { ShowModel(argument); }, "");
    } else if (name == ".timer") {
      SwitchTimer(argument);
    } else if (name == ".explain") {
      if (argument.empty()) return Fail("which query? .explain QUERY");
      RunScript("EXPLAIN " + argument);
    } else if (name == ".report") {
      ShowReport();
    } else {
      Fail(fmt::format("no command {}; .help lists them", command));
    }
    std::cout.flush();
  }

  void Fail(const std::string& message) {
    PrintToErrors("error: {}\n", message);
    failed_ = true;
  }

  void ShowModel(const std::string& name) {
    if (!name.empty()) session_.SetModel(name);
    std::cout << session_.ModelName() << '\n';
  }

  void ShowSchema(const std::string& table) {
    const std::string all =
        "SELECT sql FROM (SELECT table_name AS name, sql FROM duckdb_tables() UNION ALL "
        "SELECT view_name, quail_view_sql(sql) FROM duckdb_views() WHERE NOT internal)";
    if (table.empty()) return RunScript(all);
    const std::string sql = all + " WHERE lower(name) = lower(" + TextLiteral(table) + ")";
    if (session_.Run(sql, {sql, 0}, {})->Drain() > 0) return RunScript(sql);
    Fail(fmt::format("no table or view '{}'", table));
  }

  void ShowReport() {
    const std::string report = session_.ReportJson();
    if (report.empty()) return Fail("no statement with AI calls has been run yet");
    std::cout << report << '\n';
  }

  void SwitchTimer(const std::string& argument) {
    if (argument.empty()) {
      std::cout << (times_ ? "on" : "off") << '\n';
    } else if (argument == "on" || argument == "off") {
      times_ = argument == "on";
    } else {
      Fail(fmt::format(".timer cannot be '{}': .timer on or .timer off", argument));
    }
  }

  void ChooseDialect(const std::string& name) {
    if (name.empty()) {
      std::cout << NameOf(dialect_) << '\n';
      return;
    }
    if (const auto dialect = FindDialect(name)) {
      dialect_ = *dialect;
      return session_.SetDialect(dialect_);
    }
    Fail(fmt::format("no dialect '{}': {}", name, DialectNames()));
  }

  /// Each statement, also behind one that fails, as if it had a line of its own.
  void RunScript(const std::string& script) {
    ScriptRunner runner(session_, options_, progress_, log_);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<Session::Statement> statements;
    Attempt([&] { statements = session_.Split(script); }, script);
    for (const Session::Statement& statement : statements) {
      const bool interrupted =
          Attempt([&] { runner.RunStatement(script, statement, true, std::cout); }, script);
      if (interrupted || HeedSignals()) break;
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (times_) PrintToErrors("{:.3f} s\n", taken.count());
  }

  /// Tells of an error in `script`. Returns whether a signal was heeded.
  template <typename Call>
  bool Attempt(Call call, const std::string& script) {
    bool interrupted = false;
    Guarded(call, [&](const Error& error) {
      progress_.Clear();
      std::cout.flush();
      interrupted = HeedSignals();
      const std::string text = quail::Describe(error, script);
      log_.Keep(text);
      PrintToErrors("{}\n", text);
      failed_ = true;
    });
    return interrupted;
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
  RunLog& log_;
  Dialect dialect_;
  bool interactive_;
  std::unique_ptr<LineSource> lines_;
  bool times_ = false;
  bool quit_ = false;
  bool failed_ = false;
  std::string buffer_;  ///< lines that have not been run
  bool begun_ = false;  ///< more than comments are in them
};

}  // namespace

int RunShell(Session& session, const Options& options, ProgressLine& progress,
             Interrupts& interrupts, RunLog& log) {
  Shell shell(session, options, progress, interrupts, log);
  shell.Run();
  return shell.failed() ? 1 : 0;
}

}  // namespace quail::cli
