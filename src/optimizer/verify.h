#pragma once

#include "plan/logical.h"
#include "plan/physical.h"

namespace quail::optimizer {

/// Checks that a plan asks what it must: every planned predicate in exactly one step, every guarded
/// and computed call in a step of its own, ids within range, columns that exist, feeds that lead to
/// a later join of that anchor, one estimate a step. Aborts with the broken rule: a plan that fails
/// is our bug.
void Verify(const plan::LogicalPlan& logical, const plan::PhysicalPlan& plan);

}  // namespace quail::optimizer
