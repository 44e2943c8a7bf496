#pragma once

#include <memory>

#include "infer/model.h"

namespace quail::infer {

/// Pre-norm decoders with grouped-query attention, rotary embedding and a SwiGLU feed-forward
/// layer: llama, qwen2 and qwen3. What differs between them is data in the spec: a bias on Q, K and
/// V, a norm on the heads of Q and K, the scaling of rotary frequencies, a tied head. Parameters
/// and errors: LoadModel.
std::unique_ptr<Model> LoadDenseDecoder(const ModelRequest& request, const WeightSource& weights,
                                        Backend& backend);

/// Inverse frequencies [D / 2] of the rotary embedding (Su et al. 2021), with Llama 3.1's scaling
/// where the spec has it, divided by the tensor "rope_freqs.weight" where `weights` has one.
std::vector<float> RotaryFrequencies(const spec::ModelSpec& spec, const WeightSource& weights);

}  // namespace quail::infer
