#include "session/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "infer/counting/counting_backend.h"
#include "infer/cpu/cpu_backend.h"
#include "quail/error.h"

#ifdef QUAIL_CUDA
#include "infer/cuda/cuda_backend.h"
#endif

namespace quail::session {
namespace {

constexpr std::int64_t kMostCpuKvBytes = std::int64_t{4} << 30;
/// Of a GPU's memory, left to the driver, to descriptors and to label likelihoods.
constexpr std::int64_t kKeptDeviceBytes = std::int64_t{4} << 30;
/// A GPU's chunk, and the KV budget of the published engine in positions.
constexpr std::int32_t kCountingChunkTokens = 32768;
constexpr std::int64_t kCountingKvTokens = 362'250;

std::unique_ptr<infer::Backend> OpenCpu(const Config& config) {
  using infer::cpu::ElementType;
  infer::cpu::CpuOptions options;
  options.threads = config.threads;
  if (config.compute_type == ComputeType::kF32) options.type = ElementType::kF32;
  if (config.compute_type == ComputeType::kBf16) options.type = ElementType::kBf16;
  if (config.compute_type == ComputeType::kInt8) {
    options.products = infer::cpu::ProductType::kInt8;
  }
  return infer::cpu::CreateCpuBackend(options);
}

std::unique_ptr<infer::Backend> OpenCounting(const Config& config) {
  infer::CountingOptions options;
  options.validate = config.check_kv;
  options.preferred_chunk_tokens = kCountingChunkTokens;
  return std::make_unique<infer::CountingBackend>(options);
}

#ifdef QUAIL_CUDA
bool GpuIsUsable() { return infer::cuda::FindCuda().usable; }
std::unique_ptr<infer::Backend> OpenGpu(const Config& config) {
  infer::cuda::CudaOptions options;
  if (config.fp8_scales == Fp8Scales::kUe8m0) {
    options.power_of_two_scales = infer::cuda::PowerOfTwoScales::kAll;
  }
  return infer::cuda::CreateCudaBackend(options);
}
#else
bool GpuIsUsable() { return false; }
std::unique_ptr<infer::Backend> OpenGpu(const Config&) {
  throw Error(ErrorCode::kDevice, "this program was built without the CUDA backend");
}
#endif

}  // namespace

std::unique_ptr<infer::Backend> OpenBackend(const Config& config) {
  if (config.backend == "cuda") return OpenGpu(config);
  if (config.backend == "cpu") return OpenCpu(config);
  if (config.backend == "counting") return OpenCounting(config);
  if (config.backend == "auto") return GpuIsUsable() ? OpenGpu(config) : OpenCpu(config);
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown backend '{}': auto, cpu, cuda or counting", config.backend));
}

std::string DescribeGpu() {
#ifdef QUAIL_CUDA
  const infer::cuda::CudaAvailability found = infer::cuda::FindCuda();
  if (!found.usable) throw Error(ErrorCode::kDevice, found.reason + ": the CPU is used");
  return found.reason;
#else
  std::error_code ignored;
  throw Error(
      ErrorCode::kDevice,
      std::filesystem::exists("/dev/nvidiactl", ignored)
          ? "an NVIDIA device is there, but this program was built without CUDA: the CPU is used"
          : "no NVIDIA device on this computer: the CPU is used");
#endif
}

std::int64_t DefaultKvTokens(const infer::BackendInfo& device, std::int64_t a_token) {
  if (device.backend == "counting") return kCountingKvTokens;
  // The memory of a GPU is ours but for what has been loaded, the CPU's is also DuckDB's and
  // everyone's.
  if (device.backend == "cuda") {
    return std::max<std::int64_t>(0, device.free_memory_bytes - kKeptDeviceBytes) / a_token;
  }
  return std::min(device.memory_bytes / 8, kMostCpuKvBytes) / a_token;
}

}  // namespace quail::session
