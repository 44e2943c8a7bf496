#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
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
  std::uint64_t rows = 0;
  for (const RunReport::Step& step : report_.steps) {
    if (!FallsIntoElse(plan_, step.counters.step)) continue;
    for (const auto& [reason, failed] : step.counters.error_rows) rows += failed;
  }
  if (rows == 0) return;
  Notice(fmt::format("{} had no verdict and fell into ELSE", Counted(rows, "row")));
}

/// Other rows without a verdict are dropped by WHERE as if the answer were no. Of a budget's end
/// another notice tells.
void AiStatement::TellOfFailures() {
  if (state_.settings.fail_on_error) return;
  std::uint64_t rows = 0;
  std::uint64_t pairs = 0;
  for (const RunReport::Step& step : report_.steps) {
    if (FallsIntoElse(plan_, step.counters.step)) continue;
    for (const auto& [reason, failed] : step.counters.error_rows) {
      if (reason.starts_with(exec::kBudgetReason)) continue;
      (step.counters.kind == "join" ? pairs : rows) += failed;
    }
  }
  if (rows + pairs == 0) return;
  std::string told = rows > 0 ? Counted(rows, "row") : "";
  if (pairs > 0) told += fmt::format("{}{}", rows > 0 ? " and " : "", Counted(pairs, "pair"));
  Notice(fmt::format("{} had no verdict (quail_errors())", told));
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
  if (NoLight().empty()) {
    report_.roofline_seconds = spec::RooflineSeconds(work, model_spec_, device_spec_);
  }
  if (const exec::AskedPaths* asked = state_.model->asked()) {
    const TimeInto timed(report_.seconds["check"]);
    report_.sorted_minimum_tokens = asked->CountDistinctTokens();
  }
}

void AiStatement::FillPower() {
  const auto usage = state_.model->usage();
  if (!usage || !usage_before_) return;
  report_.device_peak_bytes = usage->peak_memory_bytes;
  report_.power = PowerBetween(*usage_before_, *usage, steps_watch_.seconds());
}

}  // namespace quail::session
