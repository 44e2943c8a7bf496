#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace quail::infer {

/// Best TRUE logit minus best FALSE logit. `logits`: f32 [rows of the answer head], the first
/// `true_rows` of them TRUE. nullopt when any of them is not finite. REQUIRES: rows on both sides.
std::optional<float> TrueFalseMargin(std::span<const float> logits, std::int32_t true_rows);

}  // namespace quail::infer
