#include "infer/cuda/attention_select.h"

#include <algorithm>
#include <iterator>

namespace quail::infer::cuda {

std::optional<AttentionKernel> SelectAttention(std::int32_t head_dim,
                                               std::int32_t heads_per_group) {
  const auto has = [heads_per_group](const auto& groups) {
    return std::find(std::begin(groups), std::end(groups), heads_per_group) != std::end(groups);
  };
  if (head_dim == kMmaHeadDim && has(kMmaGroups)) return AttentionKernel::kMma;
  if (head_dim == kWgmmaHeadDim && has(kWgmmaGroups)) return AttentionKernel::kWgmma;
  return std::nullopt;
}

}  // namespace quail::infer::cuda
