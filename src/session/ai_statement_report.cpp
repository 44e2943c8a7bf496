#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "session/ai_statement.h"
#include "session/power_meter.h"
#include "session/time_into.h"
#include "spec/roofline.h"

namespace quail::session {
namespace {

bool FallsIntoElse(const plan::PhysicalPlan& plan, std::size_t step) {
  const auto* column = std::get_if<plan::AskColumnStep>(&plan.steps[step]);
  return column != nullptr &&
         std::ranges::find(plan.case_calls, column->call) != plan.case_calls.end();
}

std::string Counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

bool IsOfBudget(const std::string& reason) { return reason.starts_with(exec::kBudgetReason); }

/// What had no verdict: rows or pairs where one call of a step counted them, else values, of which
/// a row may have several.
class Undecided {
 public:
  template <typename OfReason>
  void Add(const exec::StepCounters& step, OfReason of_reason) {
    std::uint64_t count = 0;
    std::set<std::uint32_t> calls;
    for (const auto& [reason, failed] : step.error_rows) {
      if (!of_reason(reason)) continue;
      count += failed;
      calls.insert(step.error_calls.at(reason).begin(), step.error_calls.at(reason).end());
    }
    const bool pairs = !step.anchor.empty();
    (pairs ? pairs_ : rows_) += count;
    (pairs ? calls_of_pairs_ : calls_of_rows_) += calls.size();
    const bool combined = step.kind == "on demand" || (!pairs && step.tables.size() > 1);
    values_ |= count > 0 && combined;
  }
  bool empty() const { return rows_ + pairs_ == 0; }
  std::string Text() const {
    if (values_ || calls_of_rows_ > 1 || calls_of_pairs_ > 1) {
      return fmt::format("{} of {}", Counted(rows_ + pairs_, "value"),
                         Counted(calls_of_rows_ + calls_of_pairs_, "call"));
    }
    std::string text = rows_ > 0 ? Counted(rows_, "row") : "";
    if (pairs_ > 0) text += fmt::format("{}{}", rows_ > 0 ? " and " : "", Counted(pairs_, "pair"));
    return text;
  }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t pairs_ = 0;
  std::size_t calls_of_rows_ = 0;
  std::size_t calls_of_pairs_ = 0;
  bool values_ = false;
};

}  // namespace

void AiStatement::TellOfCuts() {
  std::uint64_t cut = 0;
  for (const RunReport::Step& step : report_.steps) {
    if (step.counters.tokens) cut += step.counters.tokens->cut_asks;
  }
  if (cut == 0) return;
  Notice(
      fmt::format("{} {} longer than the {} tokens that fit: a part of the texts was left out, as "
                  "on_long says",
                  Counted(cut, "prompt"), cut == 1 ? "was" : "were", LongestPrompt()));
}

void AiStatement::Fill(const std::vector<exec::StepCounters>& steps) {
  for (const exec::StepCounters& counters : steps) {
    RunReport::Step step;
    step.counters = counters;
    if (counters.step < plan_.estimates.size()) step.estimate = plan_.estimates[counters.step];
    step.name = step.estimate && !step.estimate->name.empty()
                    ? step.estimate->name
                    : fmt::format("{} {}", counters.kind, fmt::join(counters.tables, " x "));
    if (step.estimate && NoLight().empty()) {
      step.roofline_seconds = step.estimate->roofline_seconds;
    }
    if (step.estimate && step.estimate->selectivity_from == "hint") {
      step.hint = step.estimate->selectivity;
    }
    if (step.counters.kind == "join") {
      report_.pairs = report_.pairs.value_or(0) + step.counters.asked;
    }
    report_.steps.push_back(std::move(step));
  }
  TellOfElse();
  TellOfFailures();
  TellOfCuts();
  FillFailures();
  FillModel();
}

/// A row whose WHEN has no verdict falls into ELSE, as SQL says, where nobody sees it.
void AiStatement::TellOfElse() {
  Undecided fallen;
  for (const RunReport::Step& step : report_.steps) {
    if (!FallsIntoElse(plan_, step.counters.step)) continue;
    fallen.Add(step.counters, [](const std::string&) { return true; });
  }
  if (!fallen.empty()) Notice(fmt::format("{} had no verdict and fell into ELSE", fallen.Text()));
}

/// Other rows without a verdict are dropped by WHERE as if the answer were no. Of a budget's end
/// another notice tells.
void AiStatement::TellOfFailures() {
  if (state_.settings.fail_on_error) return;
  Undecided failed;
  for (const RunReport::Step& step : report_.steps) {
    if (FallsIntoElse(plan_, step.counters.step)) continue;
    failed.Add(step.counters, [](const std::string& reason) { return !IsOfBudget(reason); });
  }
  if (!failed.empty()) Notice(fmt::format("{} had no verdict (quail_errors())", failed.Text()));
}

/// What is undecided would be NULL: rows to look at, but no ground for a change.
void AiStatement::TellOfBudget(const exec::BudgetEvaluator& limited) {
  state_.stopped_by_budget = true;
  if (statement_.changes_data()) {
    throw Error(ErrorCode::kBudget,
                fmt::format("{}: {} {} left undecided (quail_errors()), so nothing was changed",
                            limited.reason(), Counted(limited.refused(), "input"),
                            limited.refused() == 1 ? "was" : "were"));
  }
  Undecided left;
  for (const RunReport::Step& step : report_.steps) left.Add(step.counters, IsOfBudget);
  Notice(fmt::format("a budget ended the statement: {} without a verdict, NULL (quail_errors())",
                     left.empty() ? Counted(limited.refused(), "input") : left.Text()));
}

void AiStatement::FillFailures() {
  std::map<std::string, RunReport::Failure> failures;
  for (const RunReport::Step& step : report_.steps) {
    for (const auto& [reason, rows] : step.counters.error_rows) failures[reason].rows += rows;
  }
  for (std::size_t q = 0; q < verdicts_->questions(); ++q) {
    const exec::VerdictTable& table = verdicts_->table(q);
    const auto call = std::ranges::find_if(plan_.calls, [&](const plan::Call& candidate) {
      return verdicts_->question_of(candidate.id) == q;
    });
    for (const auto& failure : table.Failures()) {
      const std::string& reason = table.reasons()[failure.reason];
      ++failures[reason].count;
      nlohmann::json arguments = nlohmann::json::array();
      for (const base::TextId id : failure.key) {
        arguments.push_back(std::string(state_.texts.text(id)));
      }
      state_.errors.push_back(
          {report_.query, call->function, call->prompt,
           arguments.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), reason,
           std::to_string(failure.rows)});
    }
  }
  for (auto& [reason, failure] : failures) {
    failure.reason = reason;
    report_.failures.push_back(failure);
  }
}

/// Time for what Config::check_minimum asks for, which is none of the statement's.
double AiStatement::CheckSeconds() const {
  const auto found = report_.seconds.find("check");
  return found == report_.seconds.end() ? 0 : found->second;
}

void AiStatement::FillModel() {
  if (state_.oracle || !state_.model) return;
  report_.model = state_.model->ModelReport();
  report_.device = state_.model->DeviceReport();
  FillPower();
  const infer::PromptForest* forest = state_.model->forest();
  if (forest == nullptr) return;
  const infer::ForestCounters& counters = forest->counters();
  report_.seconds["model"] = counters.model_seconds;
  report_.minimum_tokens = counters.minimum_tokens;
  RunReport::Chunks chunks;
  chunks.count = counters.chunks;
  if (!counters.chunk_sizes.empty()) {
    chunks.median_tokens = counters.MedianChunk();
    chunks.max_tokens = *std::ranges::max_element(counters.chunk_sizes);
  }
  report_.chunks = chunks;
  RunReport::Kv kv;
  kv.capacity_tokens = forest->config().kv_tokens;
  kv.peak_tokens = counters.kv_peak_tokens;
  kv.evictions = counters.evictions;
  spec::Workload work;
  for (const auto& step : counters.steps) {
    kv.recomputed_tokens += step.recomputed_tokens;
    work.tokens += static_cast<double>(step.fresh_tokens);
  }
  report_.kv = kv;
  work.attention_pairs = static_cast<double>(counters.attention_pairs);
  work.kv_written = work.tokens;
  work.passes = static_cast<double>(counters.chunks);
  if (NoLight().empty()) FillRoofline(work);
  if (const exec::AskedPaths* asked = state_.model->asked()) {
    const TimeInto timed(report_.seconds["check"]);
    report_.sorted_minimum_tokens = asked->CountDistinctTokens();
  }
}

/// No work is faster than light: where it seems so, the device's rates are too low.
void AiStatement::FillRoofline(const spec::Workload& work) {
  const double bound = spec::RooflineSeconds(work, model_spec_, device_spec_);
  const double taken = report_.seconds["model"];
  const bool computes = state_.model->device().backend != "counting";
  if (!computes || bound <= taken) {
    report_.roofline_seconds = bound;
    return;
  }
  light_refuted_ = true;
  for (RunReport::Step& step : report_.steps) step.roofline_seconds.reset();
  Notice(
      fmt::format("the model took {:.3g} s for what needs {:.3g} s at the rates of {} ({}): they "
                  "are too low, as when a busy computer was measured, so no speed of light is told "
                  "and predictions are too long; quail calibrate measures a computer again",
                  taken, bound, device_spec_.name, device_spec_.source));
}

void AiStatement::FillPower() {
  const auto usage = state_.model->usage();
  if (!usage || !usage_before_) return;
  report_.device_peak_bytes = usage->peak_memory_bytes;
  report_.power = PowerBetween(*usage_before_, *usage, steps_watch_.seconds());
}

}  // namespace quail::session
