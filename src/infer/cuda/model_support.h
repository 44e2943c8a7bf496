#pragma once

#include "spec/model_spec.h"

namespace quail::infer::cuda {

/// Throws Error{kUnsupported} with the shape that the CUDA backend has no kernel for.
void CheckSupported(const spec::ModelSpec& spec);

}  // namespace quail::infer::cuda
