#pragma once

#include <cstdint>
#include <string>

#include "infer/prompt_forest.h"

/// What a statement's figures say against its model or its room, for a notice; empty if nothing.
namespace quail::session {

/// `equal_margins`: ModelEvaluator::equal_margins.
std::string DoubtOfModel(std::uint64_t equal_margins);
/// Forward passes that the room for KV kept half empty.
std::string DoubtOfKvRoom(const infer::ForestCounters& counters, const infer::ForestConfig& config);

}  // namespace quail::session
