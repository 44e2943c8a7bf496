#pragma once

#include <cstdint>
#include <optional>

namespace quail::infer::cuda {

/// The attention kernels that are compiled in.
enum class AttentionKernel : std::uint8_t {
  kMma,    ///< heads of 64 (attention.cu)
  kWgmma,  ///< heads of 128 (attention_wgmma.cu)
};

// Query heads a KV head that each kernel is instantiated for, and public models that have them.
inline constexpr std::int32_t kMmaHeadDim = 64;
inline constexpr std::int32_t kMmaGroups[] = {
    1, 2,
    3,  // SmolLM2-135M
    4,  // Llama 3.2 1B
    7,  // Qwen2-0.5B
};
inline constexpr std::int32_t kWgmmaHeadDim = 128;
inline constexpr std::int32_t kWgmmaGroups[] = {
    2,  // Qwen3-0.6B, 1.7B
    4,  // Qwen3-4B, 8B, Llama 3 8B
    5,  // Qwen3-14B
    8,  // Qwen3-32B, Llama 3 70B
};

/// nullopt = not supported.
std::optional<AttentionKernel> SelectAttention(std::int32_t head_dim, std::int32_t heads_per_group);

/// Query rows of a tile are (token, head of the group) pairs.
inline constexpr std::int32_t kAttentionTileRows = 128;
constexpr std::int32_t AttentionTileTokens(std::int32_t heads_per_group) {
  return kAttentionTileRows / heads_per_group;
}

}  // namespace quail::infer::cuda
