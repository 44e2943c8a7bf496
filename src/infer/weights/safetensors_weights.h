#pragma once

#include <filesystem>
#include <memory>

#include "infer/weights/weight_source.h"

namespace quail::infer {

/// The tensors of a Hugging Face checkpoint: `path` is a .safetensors file, or a folder with
/// model.safetensors or with model.safetensors.index.json and its shards. F32, F16, BF16, and fp8
/// e4m3 with 128 x 128 block scales in
/// "<name>_scale_inv", as Qwen3's FP8 checkpoints have them.
/// Throws Error{kIo | kCorrupt | kUnsupported}.
std::shared_ptr<const WeightSource> OpenSafetensorsWeights(const std::filesystem::path& path);

}  // namespace quail::infer
