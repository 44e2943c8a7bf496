#pragma once

#include "spec/model_spec.h"

namespace quail::bench {

/// The shape of Qwen3-4B in block fp8.
inline spec::ModelSpec Qwen3With4B() {
  spec::ModelSpec spec;
  spec.name = "qwen3-4b-fp8";
  spec.family = spec::ModelFamily::kQwen3;
  spec.weight_type = spec::WeightType::kFp8Block;
  spec.layers = 36;
  spec.hidden = 2560;
  spec.heads = 32;
  spec.kv_heads = 8;
  spec.head_dim = 128;
  spec.ffn = 9728;
  spec.vocabulary = 151936;
  spec.context = 40960;
  spec.norm_epsilon = 1e-6;
  spec.rope_theta = 1e6;
  spec.qk_norm = true;
  spec.tied_head = true;
  return spec;
}

}  // namespace quail::bench
