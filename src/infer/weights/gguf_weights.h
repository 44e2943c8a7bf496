#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "infer/weights/weight_source.h"
#include "spec/gguf_file.h"
#include "spec/model_spec.h"

namespace quail::infer {

/// The tensors of a GGUF file by their HF names, dequantised as they are read. Rows of Q and K,
/// which llama-type files hold interleaved for rotation of neighbours, come with the rotary halves
/// apart.
std::shared_ptr<const WeightSource> OpenGgufWeights(std::shared_ptr<const spec::GgufFile> file,
                                                    const spec::ModelSpec& spec);

/// "blk.3.attn_q.weight" for "model.layers.3.self_attn.q_proj.weight"; a name without a counterpart
/// stays.
std::string GgufName(std::string_view hf_name);
/// The head size where a tensor's rows lie interleaved in GGUF files of the spec's family (Q and K
/// of llama), else 0.
std::int64_t InterleavedHead(std::string_view hf_name, std::int64_t rows,
                             const spec::ModelSpec& spec);
/// Where such a file stores row `row` of the model's order: row p * head/2 + j of a head is stored
/// as row 2j + p.
std::int64_t InterleavedRow(std::int64_t row, std::int64_t head);

}  // namespace quail::infer
