#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "spec/model_spec.h"

namespace quail::infer::cuda {

/// What driver and GPU say of themselves, as far as the backend depends on it. CUDA's version
/// numbers are 1000 * major + 10 * minor.
struct DeviceFacts {
  std::int32_t driver_version = 0;   ///< newest CUDA that the driver supports; 0 = no driver
  std::int32_t runtime_version = 0;  ///< the CUDA that this program is built with
  std::int32_t devices = 0;
  std::int32_t device = 0;  ///< the one that is asked for
  std::string name;
  std::int32_t major = 0;  ///< compute capability
  std::int32_t minor = 0;
};

/// Why the backend cannot use the device, with the numbers; nullopt = it can.
std::optional<std::string> WhyUnusable(const DeviceFacts& facts);

/// Bytes a row of the buffers of Activations, which has each one's shape; 0 = not needed.
struct ActivationBytes {
  std::int64_t residual = 0;
  std::int64_t kept_residual = 0;
  std::int64_t normed = 0;
  std::int64_t kept_normed = 0;
  std::int64_t kept_fp8 = 0;
  std::int64_t heads = 0;
  std::int64_t kept_queries = 0;
  std::int64_t attention = 0;
  std::int64_t delta = 0;
  std::int64_t gate_up = 0;
  std::int64_t inner = 0;
  std::int64_t scales = 0;
  std::int64_t kept_scales = 0;

  std::int64_t total() const;
};
ActivationBytes ActivationBytesPerRow(const spec::ModelSpec& spec);

/// Throws Error{kOutOfMemory} with the sizes when a device with `free_bytes` left cannot hold the
/// model's weights and the activations of chunks of `chunk_tokens`.
void CheckFits(const spec::ModelSpec& spec, std::int64_t chunk_tokens, std::int64_t free_bytes,
               const std::string& device);

}  // namespace quail::infer::cuda
