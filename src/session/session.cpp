#include "quail/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash128.h"
#include "base/mapped_file.h"
#include "base/text_position.h"
#include "exec/oracle.h"
#include "relational/file_table.h"
#include "session/ai_statement.h"
#include "session/change_check.h"
#include "session/copy_to_file.h"
#include "session/error_place.h"
#include "session/plain_statement.h"
#include "session/prepared_statements.h"
#include "session/rows_result.h"
#include "session/session_state.h"
#include "session/table_functions.h"
#include "session/user_position.h"
#include "session/view_statements.h"
#include "sql/statement.h"

namespace quail::session {
namespace {

using Statement = Session::Statement;

class SessionImpl : public Session {
 public:
  explicit SessionImpl(const Config& config);

  void RegisterFile(std::string_view name, std::string_view path) override {
    relational::RegisterFile(*state_.connection, name, path);
  }
  void RegisterStream(std::string_view name, ArrowArrayStream* stream) override {
    state_.connection->Register(name, stream);
  }
  std::vector<Statement> Split(std::string_view script) const override;
  bool HasRows(std::string_view script, const Statement& statement) const override;
  std::unique_ptr<Result> Run(std::string_view script, const Statement& statement,
                              const RunOptions& options) override;
  std::uint64_t RunToFile(std::string_view script, const Statement& statement,
                          std::string_view format, std::string_view path) override;
  void Interrupt() noexcept override {
    state_.cancel.Cancel();
    state_.connection->Interrupt();
  }
  void Resume() noexcept override {
    state_.cancel.Reset();
    state_.connection->Resume();
  }
  void SetDialect(Dialect dialect) override { state_.config.dialect = dialect; }
  void SetModel(std::string_view name) override;
  std::string ModelName() override;
  void PlantAnswers(const PlantedSet& set) override;
  void PrepareModel() override { state_.Model().Prepare(state_.texts); }
  std::string ReportJson() const override { return state_.report; }
  bool StoppedByBudget() const override { return state_.stopped_by_budget; }

 private:
  sql::Statement Read(std::string_view script, const Statement& statement) const;
  std::unique_ptr<Result> RunExecution(const PreparedStatements::Execution& execution,
                                       std::string_view script, const Statement& statement,
                                       const RunOptions& options);
  std::unique_ptr<Result> RunRead(std::string_view script, const Statement& statement,
                                  sql::Statement read, const RunOptions& options);
  std::uint64_t WriteRead(std::string_view script, const Statement& statement, sql::Statement read,
                          std::string_view format, std::string_view path);
  void OpenOracle();
  void OpenCheckpoint();
  /// Files that a statement names and the relational engine cannot read become tables of that name.
  void OpenNamedFiles(const sql::Statement& statement);
  /// The report of a statement that could not be read.
  void ReportFailure(std::string_view script, const Statement& statement, const Error& failure);
  std::unique_ptr<Result> RunAnywhere(std::string_view script, const Statement& statement,
                                      const RunOptions& options);
  std::uint64_t WriteAnywhere(std::string_view script, const Statement& statement,
                              std::string_view format, std::string_view path);

  SessionState state_;
  Settings settings_;  ///< that it was opened with
  ViewStatements views_{state_};
  PreparedStatements prepared_{state_, views_};
};

SessionImpl::SessionImpl(const Config& config) : state_(config) {
  const base::Stopwatch watch;
  for (const auto& [name, value] : config.settings) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    state_.settings.Set(lower, value);
  }
  relational::DuckDbOptions options;
  options.library_path = config.duckdb_library;
  options.database = config.database;
  options.threads = config.threads;
  state_.connection = relational::OpenDuckDb(options);
  state_.lookups.texts = &state_.texts;
  exec::RegisterLookups(*state_.connection, state_.lookups);
  RegisterTableFunctions(state_);
  RegisterViewSql(*state_.connection);
  settings_ = state_.settings;
  if (!config.oracle.empty()) OpenOracle();
  if (!config.checkpoint.empty()) OpenCheckpoint();
  state_.boot_seconds = watch.seconds();
}

void SessionImpl::OpenOracle() {
  exec::FunctionEvaluator::Function decide = [oracle = exec::Oracle::Load(state_.config.oracle)](
                                                 auto prompt, auto arguments) {
    return oracle.Decide(prompt, arguments);
  };
  if (state_.config.backend == "counting") {
    state_.planted = {"oracle",
                      std::make_unique<exec::FunctionAnswers>(std::move(decide), state_.texts)};
  } else {
    state_.oracle = std::make_unique<exec::FunctionEvaluator>(std::move(decide), state_.texts);
  }
}

void SessionImpl::OpenCheckpoint() {
  if (state_.oracle) {
    const auto oracle = base::MappedFile::Open(state_.config.oracle);
    state_.oracle_hash = base::HashBytes(oracle.bytes()).ToHex();
  }
  state_.checkpoint = exec::CheckpointFile::Open(state_.config.checkpoint);
  if (!state_.config.on_notice) return;
  if (const std::uint64_t damaged = state_.checkpoint->damaged_records(); damaged > 0) {
    state_.config.on_notice(
        fmt::format("{} damaged {} of the checkpoint {} taken out: what {} held is asked again",
                    damaged, damaged == 1 ? "record" : "records", damaged == 1 ? "was" : "were",
                    damaged == 1 ? "it" : "they"));
  }
  if (state_.checkpoint->dropped_bytes() > 0) {
    state_.config.on_notice(
        fmt::format("the checkpoint ended in {} bytes of an unfinished record, "
                    "which were cut off",
                    state_.checkpoint->dropped_bytes()));
  }
}

void SessionImpl::PlantAnswers(const PlantedSet& set) {
  auto answers = std::make_unique<exec::PlantedAnswers>();
  for (const std::string& prompt : set.prompts) answers->Plant(prompt);
  const auto stream = state_.connection->Query(set.query);
  std::vector<exec::TextId> key;
  while (const auto batch = stream->Next()) {
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      key.clear();
      for (std::size_t column = 1; column < batch->columns(); ++column) {
        if (batch->IsNull(column, row)) continue;
        key.emplace_back(static_cast<std::uint32_t>(batch->Integer(column, row)));
      }
      const std::string_view prompt = batch->Text(0, row);
      if (!answers->Has(prompt)) {
        throw Error(ErrorCode::kUsage, fmt::format("an answer to '{}', which is not among the "
                                                   "prompts of the planted set {}",
                                                   prompt, set.name));
      }
      answers->Add(prompt, key);
    }
  }
  state_.planted.name = set.name;
  state_.planted.answers = std::move(answers);
}

void SessionImpl::OpenNamedFiles(const sql::Statement& statement) {
  for (const std::string& name : statement.quoted_names) {
    std::error_code ignored;
    const bool names_file =
        name.find('*') != std::string::npos || std::filesystem::exists(name, ignored);
    if (relational::IsIpcFile(name) && names_file) RegisterFile(name, name);
  }
}

void SessionImpl::ReportFailure(std::string_view script, const Statement& statement,
                                const Error& failure) {
  const Error error = WithPlace(failure, script, statement, state_.config.dialect);
  RunReport report;
  report.query = statement.text;
  report.dialect = NameOf(state_.config.dialect);
  report.seed = state_.config.seed;
  report.started_at = IsoTime();
  report.error_message = error.what();
  report.error_position = error.position();
  state_.report = report.ToJson();
}

std::string SessionImpl::ModelName() {
  if (state_.oracle) return fmt::format("none: the oracle {} decides", state_.config.oracle);
  const RunReport::Model model = state_.Model().ModelReport();
  return fmt::format("{} ({}) on {}", model.name, model.path, state_.Model().DeviceReport().name);
}

void SessionImpl::SetModel(std::string_view name) {
  if (state_.oracle) throw Error(ErrorCode::kUsage, "an oracle decides: there is no model");
  const Config before = state_.config;
  state_.config.model = name;
  if (state_.config.adapter != "none") state_.config.adapter.clear();
  state_.model.reset();
  state_.ForgetTexts();  // their tokens are the old model's
  Observed([this] { state_.Model(); }, [&](const Error&) { state_.config = before; });
}

std::vector<Statement> SessionImpl::Split(std::string_view script) const {
  std::vector<Statement> statements;
  for (const sql::ScriptPart& part : sql::SplitScript(script, state_.config.dialect)) {
    statements.push_back({std::string(script.substr(part.offset, part.size)), part.offset});
  }
  return statements;
}

bool SessionImpl::HasRows(std::string_view script, const Statement& statement) const {
  const sql::Statement read =
      sql::ReadStatement(script, {statement.offset, statement.text.size()}, state_.config.dialect);
  switch (read.kind) {
    case sql::StatementKind::kQuery:
      return read.before.empty() || read.gives_rows;
    case sql::StatementKind::kExplain:
    case sql::StatementKind::kExplainAnalyze:
    case sql::StatementKind::kDescribe:
      return true;
    case sql::StatementKind::kSet:
    case sql::StatementKind::kCreateView:
      return false;
    case sql::StatementKind::kOther:
      return read.gives_rows;
  }
  return false;
}

sql::Statement SessionImpl::Read(std::string_view script, const Statement& statement) const {
  sql::Statement read =
      sql::ReadStatement(script, {statement.offset, statement.text.size()}, state_.config.dialect);
  if (read.kind == sql::StatementKind::kOther && read.has_ai) {
    InScript(script, read, 0, [&] { state_.connection->CheckSyntax(read.query); });
    throw Error(ErrorCode::kUnsupported, read.refusal, base::Locate(script, read.first_ai));
  }
  return read;
}

std::unique_ptr<Result> SessionImpl::Run(std::string_view script, const Statement& statement,
                                         const RunOptions& options) {
  return Reworded([&] { return RunAnywhere(script, statement, options); },
                  [&](const Error& error) {
                    return WithPlace(error, script, statement, state_.config.dialect);
                  });
}

/// Errors may have no place yet.
std::unique_ptr<Result> SessionImpl::RunAnywhere(std::string_view script,
                                                 const Statement& statement,
                                                 const RunOptions& options) {
  const auto on_error = [&](const Error& error) { ReportFailure(script, statement, error); };
  const auto read_inner = [&](const Statement& inner) {
    sql::Statement read = Read(script, inner);
    if (read.has_ai) InScript(script, read, 0, [&] { state_.connection->CheckSyntax(read.query); });
    return read;
  };
  const bool kept =
      Observed([&] { return prepared_.Keep(script, statement, read_inner); }, on_error);
  if (kept || prepared_.Drop(script, statement)) return std::make_unique<EffectResult>();
  const auto execution = Observed([&] { return prepared_.Find(script, statement); }, on_error);
  if (execution) return RunExecution(*execution, script, statement, options);
  sql::Statement read = Observed([&] { return Read(script, statement); }, on_error);
  return Reworded([&] { return RunRead(script, statement, std::move(read), options); },
                  [&](const Error& error) { return views_.Reword(error, script, statement); });
}

std::unique_ptr<Result> SessionImpl::RunExecution(const PreparedStatements::Execution& execution,
                                                  std::string_view script,
                                                  const Statement& statement,
                                                  const RunOptions& options) {
  return Reworded(
      [&] {
        return RunRead(execution.text, {execution.text, 0}, execution.read, options);
      },
      [&](const Error& error) {
        return PreparedStatements::Reword(error, execution, script, statement);
      });
}

std::unique_ptr<Result> SessionImpl::RunRead(std::string_view script, const Statement& statement,
                                             sql::Statement read, const RunOptions& options) {
  if (read.kind == sql::StatementKind::kSet) {
    const auto is_it = [&](const auto& known) { return known.first == read.setting; };
    const bool known = std::ranges::any_of(state_.settings.List(), is_it);
    Recoded(
        [&] {
          read.resets ? state_.settings.Reset(read.setting, settings_)
                      : state_.settings.Set(read.setting, read.value);
        },
        [](ErrorCode code) { return code == ErrorCode::kUsage ? ErrorCode::kBind : code; },
        base::Locate(script, known ? read.value_offset : read.setting_offset));
    return std::make_unique<EffectResult>();
  }
  OpenNamedFiles(read);
  if (!read.has_ai) {
    read.has_ai = InScript(script, read, 0, [&] { return views_.Names(read); });
  }
  if (!read.has_ai && read.kind == sql::StatementKind::kOther) {
    if (auto asking = views_.ReadOver(script, statement)) read = *std::move(asking);
  }
  if (read.kind == sql::StatementKind::kCreateView && read.has_ai) {
    read = Observed([&] { return views_.WithStandIn(script, std::move(read)); },
                    [&](const Error& error) { ReportFailure(script, statement, error); });
  }
  if (!read.has_ai) {
    return PlainStatement(state_, views_, script, statement, read).Run(options);
  }
  Observed([&] { CheckChange(*state_.connection, script, read); },
           [&](const Error& error) { ReportFailure(script, statement, error); });
  return std::make_shared<AiStatement>(state_, script, statement, std::move(read))->Run(options);
}

std::uint64_t SessionImpl::RunToFile(std::string_view script, const Statement& statement,
                                     std::string_view format, std::string_view path) {
  return Reworded([&] { return WriteAnywhere(script, statement, format, path); },
                  [&](const Error& error) {
                    return WithPlace(error, script, statement, state_.config.dialect);
                  });
}

/// Errors may have no place yet.
std::uint64_t SessionImpl::WriteAnywhere(std::string_view script, const Statement& statement,
                                         std::string_view format, std::string_view path) {
  const auto on_error = [&](const Error& error) { ReportFailure(script, statement, error); };
  const auto execution = Observed([&] { return prepared_.Find(script, statement); }, on_error);
  if (execution) {
    return Reworded(
        [&] {
          return WriteRead(execution->text, {execution->text, 0}, execution->read, format, path);
        },
        [&](const Error& error) {
          return PreparedStatements::Reword(error, *execution, script, statement);
        });
  }
  sql::Statement read = Observed([&] { return Read(script, statement); }, on_error);
  return WriteRead(script, statement, std::move(read), format, path);
}

std::uint64_t SessionImpl::WriteRead(std::string_view script, const Statement& statement,
                                     sql::Statement read, std::string_view format,
                                     std::string_view path) {
  const bool is_query = read.kind == sql::StatementKind::kQuery && read.before.empty();
  if (!is_query && (!read.gives_rows || read.has_ai)) {
    throw Error(ErrorCode::kUsage, "only the rows of a query can be written to a file",
                base::Locate(script, statement.offset));
  }
  if (format == "arrow") {
    const auto result =
        Reworded([&] { return RunRead(script, statement, std::move(read), {}); },
                 [&](const Error& error) { return views_.Reword(error, script, statement); });
    auto* rows = dynamic_cast<RowsResult*>(result.get());
    QUAIL_CHECK(rows != nullptr);
    return rows->WriteIpcFile(std::string(path));
  }
  const std::string copy = CopyOptions(format);
  if (is_query) OpenNamedFiles(read);
  if (is_query && (read.has_ai || InScript(script, read, 0, [&] { return views_.Names(read); }))) {
    return std::make_shared<AiStatement>(state_, script, statement, std::move(read))
        ->RunToFile(path, copy);
  }
  return PlainStatement(state_, views_, script, statement, read).RunToFile(path, copy);
}

}  // namespace
}  // namespace quail::session

namespace quail {

std::unique_ptr<Session> Session::Open(const Config& config) {
  return std::make_unique<session::SessionImpl>(config);
}

}  // namespace quail
