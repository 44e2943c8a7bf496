#pragma once

#include <span>
#include <string_view>

#include "optimizer/plan_draft.h"

namespace quail::optimizer {

/// One step of the optimizer.
struct Pass {
  std::string_view name;
  void (*run)(PlanDraft& draft);
};

/// All passes in order.
std::span<const Pass> Passes();

}  // namespace quail::optimizer
