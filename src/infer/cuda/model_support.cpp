#include "infer/cuda/model_support.h"

#include <fmt/format.h>

#include <cstdint>

#include "infer/cuda/attention_select.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

void CheckHeads(const spec::ModelSpec& spec) {
  const bool grouped = spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0;
  if (grouped && SelectAttention(spec.head_dim, spec.heads / spec.kv_heads)) return;
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "the CUDA backend has no attention kernel for {} query and {} KV heads of size {}",
          spec.heads, spec.kv_heads, spec.head_dim));
}

void CheckWidths(const spec::ModelSpec& spec, std::int64_t step) {
  for (const std::int64_t width : {std::int64_t{spec.hidden}, std::int64_t{spec.q_width()},
                                   std::int64_t{spec.kv_width()}, std::int64_t{spec.ffn}}) {
    if (width % step == 0) continue;
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("the CUDA backend needs widths that are multiples of {}; this model has {}",
                    step, width));
  }
}

}  // namespace

void CheckSupported(const spec::ModelSpec& spec) {
  const bool fp8 = spec.weight_type == spec::WeightType::kFp8Block;
  CheckHeads(spec);
  CheckWidths(spec, fp8 ? 128 : 8);
  if (fp8 && spec.head_dim != 128) {
    throw Error(ErrorCode::kUnsupported, "block-scaled fp8 needs heads of size 128");
  }
}

}  // namespace quail::infer::cuda
