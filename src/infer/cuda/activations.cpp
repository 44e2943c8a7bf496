#include "infer/cuda/activations.h"

#include "infer/cuda/device_support.h"

namespace quail::infer::cuda {

void Activations::Allocate(const spec::ModelSpec& spec, bool fp8, std::int32_t rows) {
  const ActivationBytes bytes = ActivationBytesPerRow(spec);
  fp8_ = fp8;
  scale_pitch_ = (std::int64_t{rows} + 3) / 4 * 4;
  const auto buffer = [this](std::int64_t bytes_a_row) {
    return DeviceBuffer(static_cast<std::size_t>(scale_pitch_ * bytes_a_row),
                        "the activations of a chunk");
  };
  residual_ = buffer(bytes.residual);
  kept_residual_ = buffer(bytes.kept_residual);
  normed_ = buffer(bytes.normed);
  kept_normed_ = buffer(bytes.kept_normed);
  kept_fp8_ = buffer(bytes.kept_fp8);
  heads_ = buffer(bytes.heads);
  kept_queries_ = buffer(bytes.kept_queries);
  attention_ = buffer(bytes.attention);
  delta_ = buffer(bytes.delta);
  gate_up_ = buffer(bytes.gate_up);
  inner_ = buffer(bytes.inner);
  scales_ = buffer(bytes.scales);
  kept_scales_ = buffer(bytes.kept_scales);
}

void Activations::Poison() {
  for (const DeviceBuffer* buffer :
       {&residual_, &kept_residual_, &normed_, &kept_normed_, &kept_fp8_, &heads_, &kept_queries_,
        &attention_, &delta_, &gate_up_, &inner_, &scales_, &kept_scales_}) {
    if (buffer->size() == 0) continue;
    CheckCuda(cudaMemset(buffer->data(), 0xFF, buffer->size()), "poison");
  }
}

}  // namespace quail::infer::cuda
