#include "infer/cuda/activations.h"

#include <algorithm>

namespace quail::infer::cuda {

void Activations::Allocate(const spec::ModelSpec& spec, bool fp8, std::int32_t rows) {
  constexpr std::size_t kBf16 = 2;
  const auto buffer = [rows](std::size_t bytes_a_row) {
    return DeviceBuffer(static_cast<std::size_t>(rows) * bytes_a_row, "the activations of a chunk");
  };
  const auto hidden = static_cast<std::size_t>(spec.hidden);
  const auto q_width = static_cast<std::size_t>(spec.q_width());
  const auto kv_width = static_cast<std::size_t>(spec.kv_width());
  const auto ffn = static_cast<std::size_t>(spec.ffn);
  const std::size_t element = fp8 ? 1 : kBf16;
  fp8_ = fp8;
  residual_ = buffer(hidden * kBf16);
  kept_residual_ = buffer(hidden * kBf16);
  normed_ = buffer(hidden * element);
  kept_normed_ = buffer(hidden * kBf16);
  heads_ = buffer((q_width + 2 * kv_width) * kBf16);
  kept_queries_ = buffer(q_width * kBf16);
  delta_ = buffer(hidden * kBf16);
  gate_up_ = buffer(2 * ffn * kBf16);
  attention_ = buffer(q_width * element);
  inner_ = buffer(ffn * element);
  if (!fp8) return;
  kept_fp8_ = buffer(hidden);
  scale_pitch_ = (std::int64_t{rows} + 3) / 4 * 4;
  const auto scales = [this](std::size_t columns) {
    return DeviceBuffer(columns / 128 * static_cast<std::size_t>(scale_pitch_) * sizeof(float),
                        "the scales of a chunk's activations");
  };
  scales_ = scales(std::max({hidden, q_width, ffn}));
  kept_scales_ = scales(hidden);
}

}  // namespace quail::infer::cuda
