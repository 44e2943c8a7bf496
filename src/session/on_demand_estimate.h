#pragma once

#include "plan/physical.h"
#include "relational/connection.h"

namespace quail::session {

/// How many lookups of calls on demand the engine expects of a run of the step: its estimates of
/// the rows that reach them, added up. Asks nothing. REQUIRES: the relations exist, and lookups
/// serve the plan.
double EstimateLookups(relational::Connection& connection, const plan::AskOnDemandStep& step);

}  // namespace quail::session
