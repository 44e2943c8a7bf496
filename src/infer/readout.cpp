#include "infer/readout.h"

#include <algorithm>
#include <cmath>

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

}  // namespace quail::infer
