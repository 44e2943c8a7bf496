#include "infer/cpu/cpu_log_probs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace quail::infer::cpu {
namespace {

constexpr std::size_t kStatesAtOnce = 64;

/// Of one state and one panel of the head.
struct Part {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;  ///< of exp(logit - max)
  float token_logit = 0;
};

struct PanelTask {
  const LinearWeight::Panel& panel;
  std::int64_t columns = 0;  ///< of the panel's rows, those below the vocabulary
  std::span<const ScoredState> states;
  Part* parts = nullptr;  ///< state i's is parts[i * part_stride]
  std::size_t part_stride = 0;
};

void ScorePanel(const LogProbTools& tools, std::int64_t width, const PanelTask& task) {
  const std::int64_t panel_rows = task.panel.rows;
  const auto scratch = tools.scratch.Take();
  scratch->rows.Reserve(static_cast<std::size_t>(kMaxProductRows * panel_rows) * sizeof(float));
  ActivationRows& states = scratch->states;
  tools.engine.Reserve(kMaxProductRows, width, states);
  const std::size_t bytes = tools.engine.RowBytes(width);
  for (std::size_t i = 0; i < task.states.size(); ++i) {
    const auto row = static_cast<std::size_t>(task.states[i].row);
    std::memcpy(states.values.data() + i * bytes, tools.normed.values.data() + row * bytes, bytes);
    if (!states.codes.empty()) states.codes[i] = tools.normed.codes[row];
  }
  const LinearEngine::Input x =
      tools.engine.RowsOf(states, 0, static_cast<std::int64_t>(task.states.size()), width);
  tools.engine.Multiply(task.panel, {x, scratch->rows.floats(), false}, scratch->product);
  for (std::size_t i = 0; i < task.states.size(); ++i) {
    const float* logits = scratch->rows.floats() + static_cast<std::int64_t>(i) * panel_rows;
    Part& part = task.parts[i * task.part_stride];
    part.max = *std::max_element(logits, logits + task.columns);
    part.sum = tools.kernels.sum_exp(logits, static_cast<std::int32_t>(task.columns), part.max);
    const std::int64_t token = task.states[i].token - task.panel.first_row;
    if (token >= 0 && token < task.columns) part.token_logit = logits[token];
  }
}

float Combine(std::span<const Part> parts) {
  float max = parts.front().max;
  for (const Part& part : parts) max = std::max(max, part.max);
  double sum = 0;
  double logit = 0;
  for (const Part& part : parts) {
    sum += static_cast<double>(part.sum) * std::exp(static_cast<double>(part.max - max));
    logit += static_cast<double>(part.token_logit);
  }
  return static_cast<float>(logit - static_cast<double>(max) - std::log(sum));
}

}  // namespace

std::vector<float> ComputeLogProbs(const LogProbTools& tools, const LinearWeight& head,
                                   std::int32_t vocabulary, std::span<const ScoredState> states) {
  const std::size_t panels = head.panels().size();
  std::vector<Part> parts(states.size() * panels);
  const std::size_t groups = (states.size() + kStatesAtOnce - 1) / kStatesAtOnce;
  tools.pool.ForEach(groups * panels, [&](std::size_t task) {
    const LinearWeight::Panel& panel = head.panels()[task % panels];
    const std::int64_t columns = std::min<std::int64_t>(vocabulary - panel.first_row, panel.rows);
    if (columns <= 0) return;
    const std::size_t first = task / panels * kStatesAtOnce;
    ScorePanel(
        tools, head.columns(),
        {panel, columns, states.subspan(first, std::min(kStatesAtOnce, states.size() - first)),
         parts.data() + first * panels + task % panels, panels});
  });
  std::vector<float> log_probs;
  for (std::size_t i = 0; i < states.size(); ++i) {
    QUAIL_CHECK(states[i].token >= 0 && states[i].token < vocabulary);
    log_probs.push_back(Combine(std::span(parts).subspan(i * panels, panels)));
  }
  return log_probs;
}

}  // namespace quail::infer::cpu
