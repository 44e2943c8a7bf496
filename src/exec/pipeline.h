#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/physical.h"

namespace quail::exec {

/// Steps that run at once, so that a document is read once for all of them: a filter and the joins
/// after it that have the filtered relation as their anchor. A row goes on to the next step as soon
/// as it survives one, while its KV is held. Any other step is alone.
struct Pipeline {
  std::vector<std::size_t> asking;  ///< steps that ask, each fed by the one before
  std::vector<std::size_t>
      relational;       ///< steps between and after them, to run when all have ended
  std::size_t end = 0;  ///< the first step that is not part of it
};

/// The pipeline that begins with step `first`. REQUIRES: first < plan.steps.size().
Pipeline PipelineAt(const plan::PhysicalPlan& plan, std::size_t first);

/// Id columns of `relation` that the predicates' calls read, each once, by first use.
std::vector<std::string> ColumnsOf(const plan::PhysicalPlan& plan, plan::RelationId relation,
                                   const std::vector<plan::Predicate>& predicates);

}  // namespace quail::exec
