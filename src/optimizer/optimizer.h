#pragma once

#include <cstdint>
#include <span>

#include "optimizer/cost_model.h"
#include "plan/logical.h"
#include "plan/physical.h"
#include "spec/device_spec.h"
#include "spec/model_spec.h"

namespace quail::optimizer {

/// Which side of a join becomes the anchor (SET quail_anchor).
enum class AnchorRule : std::uint8_t {
  kData,       ///< the side that makes the whole domain cheaper, from token counts alone
  kAsWritten,  ///< the side of slot {0}
};

struct OptimizerOptions {
  AnchorRule anchor = AnchorRule::kData;
  TokenCounter count_tokens;    ///< may be empty
  PromptCounter prompt_tokens;  ///< may be empty
  TurnTokens turns = {};
};

/// Turns what must be asked into steps in order: filters before joins, each relation's filters by
/// rank, joins as written with their anchors chosen, then conditions under OR, NOT and CASE, then
/// computed columns. The plan is verified. A call's anchor never depends on hints.
plan::PhysicalPlan Optimize(const plan::LogicalPlan& logical,
                            std::span<const plan::ArgumentStatistics> statistics,
                            const spec::ModelSpec& model, const spec::DeviceSpec& device,
                            const OptimizerOptions& options);

}  // namespace quail::optimizer
