#include "session/ai_statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "exec/budget_evaluator.h"
#include "exec/checkpoint_evaluator.h"
#include "exec/domain.h"
#include "exec/executor.h"
#include "optimizer/optimizer.h"
#include "plan/binder.h"
#include "plan/stand_in.h"
#include "session/argument_statistics.h"
#include "session/change_check.h"
#include "session/connection_catalog.h"
#include "session/copy_to_file.h"
#include "session/describe.h"
#include "session/error_place.h"
#include "session/on_demand_estimate.h"
#include "session/planning_device.h"
#include "session/rows_result.h"
#include "session/taken_names.h"
#include "session/time_into.h"
#include "session/token_prompts_check.h"
#include "session/user_position.h"
#include "session/view_statements.h"

namespace quail::session {
namespace {

/// SQL that the user did not write has errors without a place.
std::unique_ptr<relational::ResultStream> RunOwn(relational::Connection& connection,
                                                 std::string_view sql) {
  return connection.Query(sql, relational::ErrorPlaces::kNone);
}

void Drain(relational::Connection& connection, std::string_view sql) {
  const auto stream = RunOwn(connection, sql);
  while (stream->Next()) {
  }
}

}  // namespace

AiStatement::AiStatement(SessionState& state, std::string_view script,
                         const Session::Statement& text, sql::Statement statement)
    : state_(state),
      script_(script),
      text_(text),
      dialect_(state.config.dialect),
      statement_(std::move(statement)) {
  report_.query = text.text;
  report_.dialect = NameOf(state_.config.dialect);
  report_.seed = state_.config.seed;
  report_.started_at = IsoTime();
  report_.seconds["boot"] = state_.boot_seconds;
  state_.errors.clear();
  state_.report.clear();
  state_.stopped_by_budget = false;
}

AiStatement::~AiStatement() { Close(); }

/// Ends the statement: figures that are known by now go into the report, what it made in the
/// database is dropped.
void AiStatement::Close() {
  if (std::exchange(closed_, true)) return;
  state_.lookups.verdicts = nullptr;
  if (!statement_.table.empty()) state_.views.reset();
  for (const std::string& sql :
       plan_.cleanup_sql.empty() ? logical_.cleanup_sql : plan_.cleanup_sql) {
    Quietly([&] { state_.connection->TidyUp(sql); });
  }
  if (!statement_.kept.empty()) {
    Quietly([&] { state_.connection->TidyUp("DROP TABLE IF EXISTS temp." + statement_.kept); });
  }
  report_.seconds["total"] = total_.seconds() - CheckSeconds();
  state_.report = report_.ToJson();
}

/// Runs `call`; its error goes on with a place, and into the report.
template <typename Call>
auto AiStatement::Noted(Call call) {
  return Observed(
      [&] { return Reworded(call, [this](const Error& error) { return Placed(error); }); },
      [this](const Error& error) { Fail(error); });
}

std::unique_ptr<Result> AiStatement::Run(const RunOptions& options) {
  const auto self = shared_from_this();
  more_may_follow_ = options.more_may_follow;
  return Noted([&]() -> std::unique_ptr<Result> {
    Plan();
    const bool explain = statement_.kind == sql::StatementKind::kExplain ||
                         options.explain == RunOptions::Explain::kText ||
                         options.explain == RunOptions::Explain::kJson;
    if (statement_.kind == sql::StatementKind::kDescribe) return DescribeResult(options.form);
    if (explain) return ExplainResult(options.explain == RunOptions::Explain::kJson);
    if (!IsOfEffect()) {
      Close();
      return std::make_unique<EffectResult>();
    }
    RunSteps();
    const bool analyze = statement_.kind == sql::StatementKind::kExplainAnalyze ||
                         options.explain == RunOptions::Explain::kAnalyze;
    if (analyze) return AnalyzeResult();
    return FinalResult(options);
  });
}

/// An error with a place: where the engine finds the same fault in the arguments of the AI calls,
/// if none is known, else as WithPlace says.
Error AiStatement::Placed(const Error& error) const {
  const std::string& query = statement_.query;
  ConnectionCatalog catalog(*state_.connection, state_.functions);
  std::optional<plan::StandInQuery> bound;
  const auto bind = [&] {
    bound = plan::WithStandIns(query, sql::ReadTree(catalog.Parse(query)),
                               plan::StandInArguments::kKept);
    if (bound) catalog.Columns(bound->sql);
  };
  const auto constant = error.position() ? std::nullopt : OffsetOfConstant(error, query, catalog);
  if (constant) {
    return {error.code(), error.what(), statement_.Locate(script_, *constant)};
  }
  auto found = error.position() ? std::nullopt : ErrorOf(bind);
  const bool same = found && found->position() && std::string_view(found->what()) == error.what();
  if (!same || !bound) return WithPlace(error, script_, text_, dialect_);
  found = bound->Moved(*found);
  return {error.code(), error.what(), statement_.Locate(script_, found->position()->offset)};
}

/// Ends the statement with what the report says of an error.
void AiStatement::Fail(const Error& error) {
  report_.error_message = error.what();
  report_.error_position = error.position();
  Close();
}

/// Whether there is something to do with the rows; what cannot be done fails before it is paid for.
bool AiStatement::IsOfEffect() {
  if (statement_.before.empty()) return true;
  const TimeInto timed(report_.seconds["plan"]);
  return CheckEffect(
      *state_.connection, script_, statement_,
      DescribeQuery(*state_.connection, logical_.rows_sql, relational::ErrorPlaces::kNone));
}

void AiStatement::Notice(const std::string& text) {
  if (std::ranges::find(report_.notices, text) != report_.notices.end()) return;
  report_.notices.push_back(text);
  if (state_.config.on_notice) state_.config.on_notice(text);
}

void AiStatement::Plan() {
  {
    const TimeInto timed(report_.seconds["plan"]);
    ConnectionCatalog catalog(*state_.connection, state_.functions);
    logical_ = plan::Bind(
        {script_, statement_, FreePrefix(*state_.connection), &KnownViews(state_)}, catalog);
    ApplyHints();
  }
  if (!state_.oracle) {
    state_.lookups.tokenizer = state_.Model().tokenizer();
    CheckTokenPrompts(logical_, state_.Model());
  } else {
    for (const plan::Call& call : logical_.calls) {
      if (call.kind != plan::CallKind::kCountTokens) continue;
      throw Error(
          ErrorCode::kModel,
          fmt::format("{} needs a model's tokenizer, which an oracle has not", call.function),
          call.position);
    }
  }
  MakeRelations();
  MeasureArguments();
  {
    const TimeInto timed(report_.seconds["plan"]);
    optimizer::OptimizerOptions options;
    options.anchor = state_.settings.anchor;
    if (!state_.oracle) CountTokensWith(state_.Model(), options);
    model_spec_ = state_.oracle ? SpecWithoutModel() : state_.Model().SpecOfDevice();
    ChooseDevice();
    plan_ = optimizer::Optimize(logical_, statistics_, model_spec_, device_spec_, options);
  }
  for (const std::string& notice : plan_.notices) Notice(notice);
}

/// A calibration that cannot be read is no reason to refuse the statement.
void AiStatement::ChooseDevice() {
  const infer::BackendInfo* backend = state_.oracle ? nullptr : &state_.Model().device();
  const auto fault =
      Attempt([&] { device_spec_ = PlanningDevice(backend, state_.config.threads); });
  if (!fault) return;
  Notice(*fault);
  device_spec_ = spec::UncalibratedCpu(state_.config.threads);
}

/// Hints of the configuration, where a call has none of its own.
void AiStatement::ApplyHints() {
  for (plan::Call& call : logical_.calls) {
    for (const auto& [prompt, selectivity] : state_.config.hints) {
      if (call.prompt == prompt && !call.options.selectivity) {
        call.options.selectivity = selectivity;
      }
    }
  }
}

void AiStatement::MakeRelations() {
  const TimeInto timed(report_.seconds["relational"]);
  for (const plan::Relation& relation : logical_.relations) {
    Drain(*state_.connection, relation.create_sql);
  }
  for (const std::string& sql : logical_.reduction_sql) Drain(*state_.connection, sql);
  for (const std::string& sql : logical_.pair_tables_sql) Drain(*state_.connection, sql);
  if (logical_.kept_table.empty()) return;
  plan::KeepUnnamedStructs(logical_, DescribeQuery(*state_.connection, logical_.rows_sql,
                                                   relational::ErrorPlaces::kNone));
}

void AiStatement::MeasureArguments() {
  for (const plan::Relation& relation : logical_.relations) {
    for (const std::string& column : relation.id_columns) {
      statistics_.push_back(Measure(relation, column));
    }
  }
}

plan::ArgumentStatistics AiStatement::Measure(const plan::Relation& relation,
                                              const std::string& column) {
  exec::Domain domain;
  {
    const TimeInto timed(report_.seconds["relational"]);
    domain = exec::ReadTableDomain(*state_.connection, relation.table, std::span(&column, 1), "");
  }
  const text::BpeTokenizer* tokenizer = state_.oracle ? nullptr : state_.Model().tokenizer();
  if (tokenizer != nullptr) {
    const TimeInto timed(report_.seconds["tokenize"]);
    state_.texts.Tokenize(TextsOf(domain), *tokenizer, state_.pool, &state_.cancel);
  }
  plan::ArgumentStatistics statistics = StatisticsOf(domain, state_.texts);
  statistics.relation = relation.id;
  statistics.id_column = column;
  return statistics;
}

void AiStatement::RunSteps() {
  const double pairs = plan::PlannedPairs(plan_);
  if (pairs > static_cast<double>(state_.settings.max_pairs)) {
    throw Error(ErrorCode::kBudget,
                fmt::format("the joins of this statement would ask about {:.0f} pairs; "
                            "quail_max_pairs is {}",
                            pairs, state_.settings.max_pairs));
  }
  verdicts_ = std::make_unique<exec::StatementVerdicts>(plan_);
  state_.lookups.verdicts = verdicts_.get();
  const bool judges = !state_.oracle && !state_.planted.answers;
  if (judges && !state_.Model().Caution().empty()) Notice(state_.Model().Caution());
  exec::Evaluator& model = state_.oracle ? *state_.oracle : state_.Judge();
  if (!state_.oracle) state_.Model().KeepForLater(more_may_follow_);
  if (judges && !state_.model->doubt_of_self_test().empty()) {
    Notice(state_.model->doubt_of_self_test());
  }
  std::optional<exec::PlantedEvaluator> planted;
  if (state_.planted.answers) planted.emplace(model, *state_.planted.answers);
  report_.planted_answers = state_.planted.name;
  exec::Evaluator& decides = planted ? *planted : model;
  if (state_.model) usage_before_ = state_.model->usage();
  steps_watch_.Restart();
  std::unique_ptr<exec::CheckpointEvaluator> kept;
  if (state_.checkpoint && !planted) {
    kept = std::make_unique<exec::CheckpointEvaluator>(decides, *state_.checkpoint, state_.texts,
                                                       Decider(), LongestPrompt());
  }
  const exec::Budget budget{state_.settings.max_tokens, state_.settings.max_seconds};
  exec::Evaluator& source = kept ? *kept : decides;
  exec::BudgetEvaluator limited(source, budget);
  exec::Evaluator& evaluator = budget.limited() ? limited : source;
  exec::ExecutorOptions options;
  options.cancel = &state_.cancel;
  options.fail_on_error = state_.settings.fail_on_error;
  options.on_progress = state_.config.on_progress;
  options.on_notice = [this](const std::string& text) { Notice(text); };
  options.lookups = &state_.lookups;
  options.max_pairs = state_.settings.max_pairs;
  options.planned_pairs = static_cast<std::uint64_t>(pairs);
  exec::Executor executor(*state_.connection, evaluator, *verdicts_, options);
  Observed([&] { executor.Run(plan_); },
           [&](const Error&) {
             Fill(executor.steps());
             const std::string tidy_up(executor.tidy_up_sql());
             if (!tidy_up.empty()) Quietly([&] { state_.connection->TidyUp(tidy_up); });
           });
  Fill(executor.steps());
  if (state_.model) state_.model->CheckBackend();
  if (state_.model && !planted) {
    for (const std::string& doubt : state_.model->Doubts()) Notice(doubt);
  }
  if (kept && kept->reused() > 0) {
    Notice(fmt::format("{} verdicts came from the checkpoint", kept->reused()));
  }
  if (limited.refused() > 0) TellOfBudget(limited);
  can_check_ = !executor.stopped_early() && !state_.in_transaction;
  CheckLookups();  // of calls on demand: their rows are known by now
}

void AiStatement::CheckLookups() {
  const TimeInto timed(report_.seconds["result"]);
  if (can_check_) exec::CheckUnasked(*state_.connection, state_.lookups, plan_);
}

/// What verdicts depend on beside the question.
std::string AiStatement::Decider() const {
  if (state_.oracle) return fmt::format("oracle {}", state_.oracle_hash);
  return state_.model->Identity();
}

/// In tokens; 0 where nothing counts them.
std::int64_t AiStatement::LongestPrompt() const {
  return state_.oracle ? 0 : state_.model->forest()->config().LongestPrompt();
}

std::unique_ptr<Result> AiStatement::DescribeResult(CellForm form) {
  auto stream = state_.connection->Query(
      fmt::format(
          "SELECT column_name, column_type, \"null\", \"key\", \"default\", extra FROM ({}\n)",
          plan_.final_sql),
      relational::ErrorPlaces::kNone);
  auto rows = std::make_unique<KeptRows>(*state_.connection, std::move(stream));
  Close();
  return KeptRows::Read(std::move(rows), form);
}

/// Why the plan's roofline bounds nothing; empty where it does.
std::string AiStatement::NoLight() const {
  if (state_.oracle) return "none without a model";
  if (light_refuted_) return "none: the device's rates are too low";
  return device_spec_.assumed ? "not calibrated" : "";
}

plan::ExplainHead AiStatement::Head() const {
  plan::ExplainHead head;
  head.model = state_.oracle ? "oracle" : state_.model->spec().name;
  head.device = device_spec_.name;
  head.max_pairs = state_.settings.max_pairs;
  head.no_light = NoLight();
  if (!state_.oracle) {
    const text::AnswerWords& words = state_.model->answers().words;
    head.answers = fmt::format("{} / {}", words.yes, words.no);
    if (state_.model->chat() != nullptr) head.answers += " in layout chat";
  }
  return head;
}

/// EXPLAIN alone pays for the engine's estimates.
void AiStatement::PriceOnDemand() {
  if (plan_.steps.empty()) return;
  const auto* step = std::get_if<plan::AskOnDemandStep>(&plan_.steps.back());
  if (step == nullptr) return;
  verdicts_ = std::make_unique<exec::StatementVerdicts>(plan_);
  state_.lookups.verdicts = verdicts_.get();
  const double lookups = EstimateLookups(*state_.connection, *step);
  plan_.estimates.back().rows_in = lookups;
  plan_.estimates.back().asks = lookups;
}

std::unique_ptr<Result> AiStatement::ExplainResult(bool json) {
  PriceOnDemand();
  const std::string text =
      json ? plan::ExplainJson(plan_, Head()) : plan::ExplainText(plan_, Head());
  Close();
  return std::make_unique<KnownResult>(std::vector<ColumnInfo>{{"plan", "VARCHAR"}},
                                       KnownResult::Rows{{text}}, true);
}

/// Reads the rows to the end, so that all has happened that the plan's figures are of.
std::unique_ptr<Result> AiStatement::AnalyzeResult() {
  std::uint64_t rows = 0;
  {
    const TimeInto timed(report_.seconds["result"]);
    const auto stream = RunOwn(*state_.connection, plan_.final_sql);
    while (const auto batch = stream->Next()) rows += batch->rows();
  }
  CheckLookups();
  if (!statement_.then.empty()) Change();
  report_.rows = rows;
  std::vector<plan::StepActual> actual(plan_.steps.size());
  for (const RunReport::Step& step : report_.steps) {
    const exec::StepCounters& counters = step.counters;
    const std::size_t i = counters.step;
    actual[i] = {counters.asked, counters.distinct, counters.yes,
                 counters.no,    counters.null,     counters.error};
    if (counters.tokens) actual[i].fresh_tokens = static_cast<double>(counters.tokens->fresh);
    actual[i].seconds = counters.seconds;
    if (i < plan_.estimates.size()) {
      actual[i].roofline_seconds = plan_.estimates[i].roofline_seconds;
    }
  }
  const std::string text = plan::ExplainText(plan_, Head(), actual);
  Close();
  return std::make_unique<KnownResult>(std::vector<ColumnInfo>{{"plan", "VARCHAR"}},
                                       KnownResult::Rows{{text}}, true);
}

/// Makes the change of an UPDATE or DELETE of the rows that are kept.
std::unique_ptr<relational::ResultStream> AiStatement::Change() {
  return Reworded([&] { return RunOwn(*state_.connection, statement_.then); }, OfChange);
}

std::unique_ptr<Result> AiStatement::FinalResult(const RunOptions& options) {
  const std::string& sql = plan_.final_sql;
  relational::Connection& connection = *state_.connection;
  const auto self = shared_from_this();
  RowsObserver observer;
  observer.on_end = [self](std::uint64_t rows, double seconds) {
    self->report_.rows = rows;
    self->report_.seconds["result"] = seconds;
    self->Noted([&] { self->CheckLookups(); });
    self->Close();
  };
  observer.reword = [self](const Error& error) { return self->Placed(error); };
  observer.on_error = [self](const Error& error) { self->Fail(error); };
  if (statement_.before.empty() && statement_.after.empty()) {
    const columnar::Schema schema = DescribeQuery(connection, sql, relational::ErrorPlaces::kNone);
    auto rows = std::make_unique<RowsResult>(connection, sql, schema, options.form);
    rows->Observe(std::move(observer));
    return rows;
  }
  std::unique_ptr<KeptRows> kept;
  {
    const TimeInto timed(report_.seconds["result"]);
    if (can_check_ && statement_.then.empty()) {
      exec::CheckUnaskedBefore(connection, state_.lookups, plan_);
    }
    auto stream = RunOwn(connection, sql);
    if (!stream->has_rows() && !statement_.then.empty()) {
      stream.reset();
      CheckLookups();
      stream = Change();
    }
    report_.rows = stream->changed_rows();
    if (stream->has_rows()) {
      kept = std::make_unique<KeptRows>(connection, std::move(stream));
      report_.rows = kept->rows();
    }
  }
  Close();
  if (kept) return KeptRows::Read(std::move(kept), options.form);
  return std::make_unique<EffectResult>();
}

std::uint64_t AiStatement::RunToFile(std::string_view path, std::string_view copy_options) {
  return Noted([&] {
    Plan();
    RunSteps();
    {
      const TimeInto timed(report_.seconds["result"]);
      report_.rows = CopyToFile(*state_.connection, plan_.final_sql, path, copy_options,
                                relational::ErrorPlaces::kNone);
    }
    CheckLookups();
    Close();
    return *report_.rows;
  });
}

}  // namespace quail::session
