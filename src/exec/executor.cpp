#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/clock.h"
#include "exec/operators/ask_on_demand.h"
#include "exec/step_builder.h"
#include "exec/stop_waves.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

constexpr double kProgressSeconds = 0.5;
/// Runs of a statement with calls on demand: one a level of calls that depend on each other, or of
/// a recursion.
constexpr std::size_t kMostPasses = 10'000;
/// Runs in a row that read nothing of what the one before them asked. One alone may be the engine's
/// choice of rows under a LIMIT without an order.
constexpr std::size_t kMostStrayPasses = 3;

std::string NameOf(const plan::PhysicalPlan& plan, std::size_t step, const StepCounters& counters) {
  if (step < plan.estimates.size() && !plan.estimates[step].name.empty()) {
    return plan.estimates[step].name;
  }
  return fmt::format("{} {}", counters.kind, fmt::join(counters.tables, " x "));
}

std::vector<plan::CallId> CallsOf(const plan::Step& step) {
  std::vector<plan::CallId> calls;
  if (const auto* filter = std::get_if<plan::AskFilterStep>(&step)) {
    for (const auto& predicate : filter->predicates) calls.push_back(predicate.call);
  } else if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) {
    for (const auto& stage : join->stages) calls.push_back(stage.call);
  } else if (const auto* column = std::get_if<plan::AskColumnStep>(&step)) {
    calls.push_back(column->call);
  } else if (const auto* on_demand = std::get_if<plan::AskOnDemandStep>(&step)) {
    calls = on_demand->calls;
  }
  return calls;
}

/// Rows after which a step needs no more.
std::optional<std::uint64_t> EnoughOf(const plan::Step& step) {
  if (const auto* filter = std::get_if<plan::AskFilterStep>(&step)) return filter->enough;
  if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) return join->enough;
  return std::nullopt;
}

/// Tells how a step gets on, at most twice a second.
class ProgressTeller {
 public:
  ProgressTeller(const ExecutorOptions& options, std::string step)
      : options_(options), step_(std::move(step)) {}

  void Tell(const StepRun& run, const TokenCounters& tokens, bool last) {
    if (!options_.on_progress) return;
    if (!last && since_told_.seconds() < kProgressSeconds) return;
    const std::uint64_t done = run.counters().distinct;
    if (last && done == told_) return;
    told_ = done;
    since_told_.Restart();
    const double seconds = since_begin_.seconds();
    Progress progress;
    progress.step = step_;
    progress.asks_done = done;
    progress.asks_total = done + run.open_asks();
    if (seconds > 0) {
      progress.rows_per_second = static_cast<double>(done) / seconds;
      progress.fresh_tokens_per_second = static_cast<double>(tokens.fresh) / seconds;
    }
    const std::uint64_t verdicts = run.counters().yes + run.counters().no;
    if (verdicts > 0) {
      progress.observed_selectivity =
          static_cast<double>(run.counters().yes) / static_cast<double>(verdicts);
    }
    if (done > 0) {
      progress.seconds_left =
          seconds * static_cast<double>(run.open_asks()) / static_cast<double>(done);
    }
    options_.on_progress(progress);
  }

 private:
  const ExecutorOptions& options_;
  std::string step_;
  base::Stopwatch since_begin_;
  base::Stopwatch since_told_;
  std::uint64_t told_ = 0;
};

void RunForEffect(relational::Connection& connection, const std::string& sql) {
  const auto stream = connection.Query(sql, relational::ErrorPlaces::kNone);
  while (stream->Next()) {
  }
}

/// Runs of a statement with calls on demand. Many of them are planned once: where each run decides
/// one more call of a long condition, planning it would cost most.
class StatementRuns {
 public:
  /// `tidy_up` is the SQL that an error makes necessary, as long as it does.
  StatementRuns(relational::Connection& connection, const plan::AskOnDemandStep& step,
                std::string_view& tidy_up)
      : connection_(connection), step_(step), tidy_up_(tidy_up) {}

  /// Returns whether the rows are kept.
  bool Run() {
    if (planned_ < kPlannedRuns || keep_all_) {
      ++planned_;
      RunForEffect(connection_, step_.sql);
      return true;
    }
    if (tidy_up_.empty()) {
      RunForEffect(connection_, fmt::format("PREPARE {} AS {}", kName, step_.query));
      tidy_up_ = kDeallocate;
    }
    RunForEffect(connection_, fmt::format("EXECUTE {}", kName));
    return false;
  }
  /// From now on. A run that was planned before may miss what a new one reads: lookups of constants
  /// have the values that the engine found when it planned.
  void KeepAll() { keep_all_ = true; }
  /// After the last run.
  void End() {
    if (!tidy_up_.empty()) RunForEffect(connection_, std::string(kDeallocate));
    tidy_up_ = {};
  }

 private:
  static constexpr const char* kName = "\"quail runs\"";  // no dialect's name can be it
  static constexpr std::string_view kDeallocate = "DEALLOCATE \"quail runs\"";
  static constexpr std::size_t kPlannedRuns = 2;  // most statements need no more

  relational::Connection& connection_;
  const plan::AskOnDemandStep& step_;
  std::string_view& tidy_up_;
  std::size_t planned_ = 0;
  bool keep_all_ = false;
};

}  // namespace

Executor::Executor(relational::Connection& connection, Evaluator& evaluator,
                   StatementVerdicts& verdicts, ExecutorOptions options)
    : connection_(connection),
      evaluator_(evaluator),
      verdicts_(verdicts),
      options_(std::move(options)),
      texts_(connection) {}

void Executor::Run(const plan::PhysicalPlan& plan) {
  evaluator_.Begin();
  questions_.clear();
  for (std::size_t i = 0; i < verdicts_.questions(); ++i) {
    questions_.push_back(evaluator_.Add(verdicts_.question(i)));
  }
  for (std::size_t i = 0; i < plan.steps.size();) {
    const Pipeline pipeline = PipelineAt(plan, i);
    if (!pipeline.asking.empty()) RunPipeline(plan, pipeline);
    for (const std::size_t step : pipeline.asking) {
      const auto* join = std::get_if<plan::AskJoinStep>(&plan.steps[step]);
      if (join == nullptr) continue;
      for (const std::string& sql : join->keep_sql) RunForEffect(connection_, sql);
    }
    for (const std::size_t step : pipeline.relational) {
      RunForEffect(connection_, std::get<plan::RelationalStep>(plan.steps[step]).sql);
      texts_.Forget();
    }
    i = pipeline.end;
  }
  const bool rows_are_read =
      !plan.steps.empty() && std::holds_alternative<plan::AskOnDemandStep>(plan.steps.back());
  if (options_.lookups != nullptr && !rows_are_read) options_.lookups->unasked.Restart();
}

/// The steps of a pipeline while they run. Keeps their counters whatever ends them.
class Executor::PipelineRun {
 public:
  PipelineRun(Executor& executor, const plan::PhysicalPlan& plan, const Pipeline& pipeline)
      : executor_(executor), steps_(pipeline.asking) {
    for (const std::size_t step : steps_) {
      described_.push_back(DescribeStep(plan, step));
      tellers_.emplace_back(executor.options_, NameOf(plan, step, described_.back()));
    }
  }
  ~PipelineRun() {
    Stop();
    for (std::size_t i = 0; i < steps_.size(); ++i) KeepCounters(i);
  }
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  void Build(const plan::PhysicalPlan& plan, const Pipeline& pipeline) {
    others_.emplace(plan, pipeline, executor_.texts_);
    const StepBuilder builder(plan, executor_.connection_, pipeline);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      runs_.push_back(builder.Build(context(i)));
      if (i > 0) runs_[i - 1]->PassTo(*runs_[i]);
    }
  }
  /// Instead of Build: the only step's operator.
  void BuildOnDemand() {
    auto run = std::make_unique<AskOnDemand>(context(0));
    on_demand_ = run.get();
    runs_.push_back(std::move(run));
  }
  AskOnDemand& on_demand() { return *on_demand_; }
  /// Decides tuples of a call on demand.
  void AskAll(plan::CallId call, const std::set<std::vector<TextId>>& tuples) {
    executor_.CountPairs(call, tuples.size());
    on_demand_->Begin(call, tuples);
    while (Advance()) {
    }
    on_demand_->Close();
    while (Advance()) {
    }
    on_demand_->End();
  }

  /// One round of the evaluator; false when nothing is left to ask.
  bool Advance() {
    // What is further on goes first: it reads KV that is held. Verdicts that were known already may
    // pass a tuple on at once.
    for (std::size_t i = runs_.size(); i-- > 0;) runs_[i]->Feed();
    for (std::size_t i = 1; i < runs_.size(); ++i) runs_[i]->Feed();
    outcomes_.clear();
    if (!executor_.evaluator_.Next(outcomes_, executor_.options_.cancel)) return false;
    for (const Outcome& outcome : outcomes_) runs_[StepRun::PlaceOf(outcome)]->Take(outcome);
    Tell(false);
    return true;
  }

  void Close() {
    for (const auto& run : runs_) run->Close();
  }
  void Stop() {
    for (const auto& run : runs_) run->Stop();
  }
  void Tell(bool last) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      tellers_[i].Tell(*runs_[i],
                       executor_.evaluator_.tokens(static_cast<std::uint16_t>(steps_[i])), last);
    }
  }

  std::uint64_t survivors() const { return runs_.back()->survivors(); }
  std::uint64_t unjudged() const {
    std::uint64_t sum = 0;
    for (const auto& run : runs_) sum += run->counters().unjudged;
    return sum;
  }
  bool any_error() const {
    return std::ranges::any_of(runs_, [](const auto& run) { return run->counters().error > 0; });
  }

 private:
  StepContext context(std::size_t place) const {
    QUAIL_CHECK_LE(steps_[place], std::numeric_limits<std::uint16_t>::max());
    return {executor_.verdicts_,
            executor_.evaluator_,
            executor_.questions_,
            static_cast<std::uint16_t>(steps_[place]),
            static_cast<std::uint16_t>(place),
            others_ ? &*others_ : nullptr};
  }

  void KeepCounters(std::size_t i) {
    StepCounters counters = i < runs_.size() ? runs_[i]->counters() : StepCounters{};
    counters.step = described_[i].step;
    counters.kind = described_[i].kind;
    counters.tables = described_[i].tables;
    counters.anchor = described_[i].anchor;
    counters.seconds = watch_.seconds();
    if (executor_.evaluator_.counts_tokens()) {
      counters.tokens = executor_.evaluator_.tokens(static_cast<std::uint16_t>(steps_[i]));
    }
    executor_.steps_.push_back(std::move(counters));
  }

  Executor& executor_;
  const std::vector<std::size_t>& steps_;
  std::vector<StepCounters> described_;
  std::vector<ProgressTeller> tellers_;
  std::optional<OtherReads> others_;
  std::vector<std::unique_ptr<StepRun>> runs_;
  AskOnDemand* on_demand_ = nullptr;
  std::vector<Outcome> outcomes_;
  base::Stopwatch watch_;
};

void Executor::RunPipeline(const plan::PhysicalPlan& plan, const Pipeline& pipeline) {
  if (std::holds_alternative<plan::AskOnDemandStep>(plan.steps[pipeline.asking.front()])) {
    return RunOnDemand(plan, pipeline);
  }
  const auto limit = EnoughOf(plan.steps[pipeline.asking.front()]);
  QUAIL_CHECK(!limit || pipeline.asking.size() == 1);
  std::uint64_t unjudged = 0;
  {
    PipelineRun run(*this, plan, pipeline);
    run.Build(plan, pipeline);
    bool enough = limit && *limit == 0;
    for (bool closed = false; !enough;) {
      if (run.Advance()) {
        if (options_.fail_on_error && run.any_error()) break;
        enough = limit && run.survivors() >= *limit;
      } else if (!closed) {
        closed = true;
        run.Close();  // what waited for all that can be admitted goes on
      } else {
        break;
      }
    }
    run.Tell(true);
    evaluator_.Withdraw();  // of what an early end left
    run.Stop();
    unjudged = enough ? run.unjudged() : 0;
  }
  stopped_early_ = stopped_early_ || unjudged > 0;
  if (unjudged > 0 && options_.on_notice) {
    options_.on_notice(fmt::format("LIMIT {} was reached: {} {} left unjudged", *limit, unjudged,
                                   unjudged == 1 ? "row was" : "rows were"));
  }
  CheckErrors(plan, pipeline);
}

void Executor::RunOnDemand(const plan::PhysicalPlan& plan, const Pipeline& pipeline) {
  const auto& step = std::get<plan::AskOnDemandStep>(plan.steps[pipeline.asking.front()]);
  QUAIL_CHECK(options_.lookups != nullptr);
  OnDemandReads reads(verdicts_, step.calls, step.stops);
  const ReadsScope noting(*options_.lookups, reads);
  PipelineRun run(*this, plan, pipeline);
  run.BuildOnDemand();
  std::size_t passes = 0;
  std::vector<std::uint32_t> waves(step.stops.size());
  std::ranges::transform(step.stops, waves.begin(), &plan::EarlyStop::wave);
  std::size_t stray = 0;
  StatementRuns runs(connection_, step, tidy_up_sql_);
  for (bool done = false; !done;) {
    reads.Clear();
    options_.lookups->unasked.Restart();
    const bool kept = runs.Run();
    stray = passes++ == 0 || reads.found_missed() ? 0 : stray + 1;
    if (reads.any_undecided() && (stray == kMostStrayPasses || passes == kMostPasses)) {
      throw Error(ErrorCode::kQuery,
                  fmt::format("AI calls on demand read other texts in each of {} runs of the "
                              "statement: they depend on random or other volatile values; keep "
                              "those in a table first (CREATE TEMP TABLE .. AS)",
                              passes),
                  plan.calls[step.calls[0].value()].position);
    }
    const bool asked = AskUndecided(step, reads, waves, run);
    if (asked) CheckErrors(plan, pipeline);
    if (!asked && !kept) runs.KeepAll();
    done = !asked && kept;
  }
  runs.End();
  run.Tell(true);
  for (const plan::CallId call : step.calls) run.on_demand().CountReads(call, reads.of(call));
  run.on_demand().CountUnjudged(reads.unjudged());
}

/// Throws Error{kBudget} before more pairs are asked than the statement may.
void Executor::CountPairs(plan::CallId id, std::size_t tuples) {
  const plan::Call& call = verdicts_.call(id);
  if (call.arguments.size() < 2) return;
  pairs_on_demand_ += tuples;
  const std::uint64_t pairs = options_.planned_pairs + pairs_on_demand_;
  if (pairs <= options_.max_pairs) return;
  throw Error(
      ErrorCode::kBudget,
      fmt::format("{} would ask about {} pairs, {} with those before; quail_max_pairs is {}",
                  call.function, tuples, pairs, options_.max_pairs),
      call.position);
}

/// Asks what the engine's last pass needs, of an early stop of a condition only a part, twice as
/// much each time; whether that was anything.
bool Executor::AskUndecided(const plan::AskOnDemandStep& step, const OnDemandReads& reads,
                            std::vector<std::uint32_t>& waves, PipelineRun& run) {
  bool any = false;
  const auto ask = [&](plan::CallId call, const std::set<std::vector<TextId>>& tuples) {
    if (tuples.empty()) return;
    any = true;
    run.AskAll(call, tuples);
  };
  for (const plan::CallId call : step.calls) ask(call, reads.of(call).undecided);
  for (std::size_t stop = 0; stop < step.stops.size(); ++stop) {
    if (!step.stops[stop].has_condition) {
      any |= AskUntilMet(step.stops[stop], reads.rows_of(stop), run);
      continue;
    }
    for (const auto& [call, tuples] : NextOfEach(reads.rows_of(stop), waves[stop])) {
      ask(call, tuples);
    }
    waves[stop] *= 2;
  }
  return any;
}

/// Asks what an early stop of one call needs; whether that was anything.
bool Executor::AskUntilMet(const plan::EarlyStop& stop, const OnDemandReads::StopRows& rows,
                           PipelineRun& run) {
  const plan::CallId call = stop.calls.front();
  const VerdictTable& table = verdicts_.table(verdicts_.question_of(call));
  const auto meets = [&](std::span<const TextId> tuple) -> std::optional<bool> {
    const Judgement judgement = table.Find(tuple);
    if (judgement.verdict == Verdict::kUndecided) return std::nullopt;
    const auto truth = verdicts_.Truth(call, judgement);
    return truth && *truth != stop.negated;
  };
  StopWaves waves(rows, stop.wave);
  bool any = false;
  for (auto wave = waves.Next(meets); !wave.empty(); wave = waves.Next(meets)) {
    any = true;
    run.AskAll(call, wave);
    if (options_.fail_on_error && run.any_error()) break;
  }
  return any;
}

void Executor::CheckErrors(const plan::PhysicalPlan& plan, const Pipeline& pipeline) const {
  for (const std::size_t step : pipeline.asking) CheckErrors(plan, plan.steps[step]);
}

void Executor::CheckErrors(const plan::PhysicalPlan& plan, const plan::Step& step) const {
  for (const plan::CallId id : CallsOf(step)) {
    const plan::Call& call = plan.calls[id.value()];
    const VerdictTable& table = verdicts_.table(verdicts_.question_of(id));
    const auto failures = table.Failures();
    if (failures.empty()) continue;
    if (options_.fail_on_error) {
      throw Error(
          ErrorCode::kQuery,
          fmt::format("{} failed for {} of {} distinct inputs, the first: {}", call.function,
                      failures.size(), table.decided(), table.reasons()[failures.front().reason]),
          call.position);
    }
    if (!call.options.max_error_ratio) continue;
    const double ratio =
        static_cast<double>(failures.size()) / static_cast<double>(table.decided());
    if (ratio > *call.options.max_error_ratio) {
      throw Error(
          ErrorCode::kQuery,
          fmt::format("{}: {} of {} distinct inputs failed, a ratio of {:.3g}; "
                      "max_error_ratio is {:.3g} (the first: {})",
                      call.function, failures.size(), table.decided(), ratio,
                      *call.options.max_error_ratio, table.reasons()[failures.front().reason]),
          call.position);
    }
  }
}

}  // namespace quail::exec
