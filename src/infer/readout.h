#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace quail::infer {

/// Best TRUE logit minus best FALSE logit. `logits`: f32 [rows of the answer head], the first
/// `true_rows` of them TRUE. nullopt when any of them is not finite. REQUIRES: rows on both sides.
std::optional<float> TrueFalseMargin(std::span<const float> logits, std::int32_t true_rows);

/// Sum of a leaf's log-probabilities; nullopt when it is not finite. REQUIRES: at least one.
std::optional<float> SumLogProbability(std::span<const float> log_probs);

}  // namespace quail::infer
