#pragma once

#include <memory>

#include "infer/prompt_forest.h"

namespace quail::infer {

/// The control of benchmarks: asks are requests of their own, served in the order in which they
/// come, a step at a time; what they have in common is found by a hash prefix cache over blocks, as
/// a server of independent requests does it (docs/benchmarks.md says which, and with what
/// settings). No radix sharing below a block, no order of work, no knowledge of what comes; groups
/// are refused. `config.chunk_tokens` is the most tokens of a step, `config.radix` has no meaning.
std::unique_ptr<PromptForest> CreateRequestQueue(const Model& model, Backend& backend,
                                                 const ForestConfig& config);

}  // namespace quail::infer
