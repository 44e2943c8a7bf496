#pragma once

#include "optimizer/optimizer.h"
#include "plan/logical.h"
#include "session/model_host.h"

namespace quail::session {

/// Throws Error{kModel} at a call that would need a tokenizer where the model has none, and
/// Error{kUnsupported} where prompt pieces that are given as token ids do not fit a call.
void CheckTokenPrompts(const plan::LogicalPlan& plan, const ModelHost& model);

/// Lets the planner count a prompt's tokens as the model will see them.
void CountTokensWith(const ModelHost& model, optimizer::OptimizerOptions& options);

}  // namespace quail::session
