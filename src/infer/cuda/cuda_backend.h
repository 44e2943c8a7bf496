#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "infer/backend.h"

namespace quail::infer::cuda {

/// Which scales of fp8 activations are rounded up to powers of two, for comparing answers with
/// other engines: none, the attention output's alone (vLLM 0.26 on Hopper, whose kernels of norm
/// and SwiGLU with quantisation leave the scale as it is), or all.
enum class PowerOfTwoScales : std::uint8_t { kNone, kAttention, kAll };

struct CudaOptions {
  int device = 0;
  std::int32_t max_chunk_tokens = 32768;
  PowerOfTwoScales power_of_two_scales = PowerOfTwoScales::kNone;
  /// Fill what the kernels of a chunk write for each other with NaN when it is made: for tests, in
  /// which a value that is read and was never written then shows.
  bool poison_activations = false;
};

/// Whether this computer has a GPU that the backend can use; `reason` says why not ("no NVIDIA
/// driver", "compute capability 8.0, sm_90 is needed", ..).
struct CudaAvailability {
  bool usable = false;
  std::string reason;
};
CudaAvailability FindCuda(int device = 0);

/// The Hopper backend: bf16 and block-scaled fp8 weights, bf16 KV, one compute stream. Throws
/// Error{kDevice} as FindCuda reports.
std::unique_ptr<Backend> CreateCudaBackend(const CudaOptions& options);

}  // namespace quail::infer::cuda
