#pragma once

#include <memory>

#include "infer/weights/weight_source.h"
#include "spec/gguf_file.h"
#include "spec/model_spec.h"

namespace quail::infer {

/// The tensors of a GGUF file by their HF names, dequantised as they are read. Rows of Q and K, which llama-type files
/// hold interleaved for rotation of neighbours, come with the rotary halves apart.
std::shared_ptr<const WeightSource> OpenGgufWeights(std::shared_ptr<const spec::GgufFile> file,
                                                    const spec::ModelSpec& spec);

}  // namespace quail::infer
