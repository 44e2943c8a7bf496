#include "exec/executor.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/clock.h"
#include "exec/step_builder.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

constexpr double kProgressSeconds = 0.5;

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
  }
  return calls;
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

}  // namespace

Executor::Executor(relational::Connection& connection, Evaluator& evaluator,
                   StatementVerdicts& verdicts, ExecutorOptions options)
    : connection_(connection),
      evaluator_(evaluator),
      verdicts_(verdicts),
      options_(std::move(options)) {}

void Executor::Run(const plan::PhysicalPlan& plan) {
  evaluator_.Begin();
  questions_.clear();
  for (std::size_t i = 0; i < verdicts_.questions(); ++i) {
    questions_.push_back(evaluator_.Add(verdicts_.question(i)));
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) RunStep(plan, i);
}

/// Keeps a step's counters whatever ends it.
class Executor::StepScope {
 public:
  StepScope(Executor& executor, const plan::PhysicalPlan& plan, std::size_t step)
      : executor_(executor), step_(static_cast<std::uint16_t>(step)) {
    DescribeStep(plan, step, described_);
  }
  ~StepScope() {
    if (run) run->Stop();
    StepCounters counters = run ? run->counters() : StepCounters{};
    counters.kind = described_.kind;
    counters.tables = described_.tables;
    counters.anchor = described_.anchor;
    counters.seconds = watch_.seconds();
    if (executor_.evaluator_.counts_tokens()) {
      counters.tokens = executor_.evaluator_.tokens(step_);
    }
    executor_.steps_.push_back(std::move(counters));
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  const StepCounters& described() const { return described_; }

  std::unique_ptr<StepRun> run;

 private:
  Executor& executor_;
  std::uint16_t step_;
  StepCounters described_;
  base::Stopwatch watch_;
};

void Executor::RunStep(const plan::PhysicalPlan& plan, std::size_t index) {
  if (const auto* relational = std::get_if<plan::RelationalStep>(&plan.steps[index])) {
    const auto stream = connection_.Query(relational->sql);
    while (stream->Next()) {
    }
    return;
  }
  const auto* column = std::get_if<plan::AskColumnStep>(&plan.steps[index]);
  if (column != nullptr && plan.calls[column->call.value()].kind == plan::CallKind::kCountTokens) {
    return;  // the lookup counts them
  }
  const bool limited = plan.limit.has_value() && index + 1 == plan.steps.size();
  std::uint64_t unjudged = 0;
  {
    StepScope scope(*this, plan, index);
    const auto step = static_cast<std::uint16_t>(index);
    scope.run =
        StepBuilder(plan, connection_).Build({verdicts_, evaluator_, questions_, step}, index);
    ProgressTeller teller(options_, NameOf(plan, index, scope.described()));
    std::vector<Outcome> outcomes;
    bool enough = limited && *plan.limit == 0;
    while (!enough) {
      scope.run->Feed();
      outcomes.clear();
      if (!evaluator_.Next(outcomes, options_.cancel)) break;
      for (const Outcome& outcome : outcomes) scope.run->Take(outcome);
      teller.Tell(*scope.run, evaluator_.tokens(step), false);
      enough = limited && scope.run->survivors() >= *plan.limit;
    }
    teller.Tell(*scope.run, evaluator_.tokens(step), true);
    if (enough) {
      evaluator_.Withdraw();
      scope.run->Stop();
      unjudged = scope.run->counters().unjudged;
    }
  }
  if (unjudged > 0 && options_.on_notice) {
    options_.on_notice(fmt::format("LIMIT {} was reached: {} {} left unjudged", *plan.limit,
                                   unjudged, unjudged == 1 ? "row was" : "rows were"));
  }
  CheckErrors(plan, plan.steps[index]);
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
