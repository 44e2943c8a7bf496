#include "infer/readout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace quail::infer {

std::optional<float> TrueFalseMargin(std::span<const float> logits, std::int32_t true_rows) {
  const auto split = static_cast<std::size_t>(true_rows);
  QUAIL_CHECK(split > 0 && split < logits.size());
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    return std::nullopt;
  }
  return std::ranges::max(logits.first(split)) - std::ranges::max(logits.subspan(split));
}

std::optional<float> SumLogProbability(std::span<const float> log_probs) {
  QUAIL_CHECK(!log_probs.empty());
  const double sum = std::accumulate(log_probs.begin(), log_probs.end(), 0.0);
  if (!std::isfinite(sum)) return std::nullopt;
  return static_cast<float>(sum);
}

}  // namespace quail::infer
