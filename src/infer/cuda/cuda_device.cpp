#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "infer/cuda/cuda_backend.h"
#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {
namespace {

constexpr int kNeededMajor = 9;

/// CUDA's version numbers are 1000 * major + 10 * minor.
std::string VersionName(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string DriverTooOld() {
  int supported = 0;
  if (cudaDriverGetVersion(&supported) != cudaSuccess || supported == 0) {
    return "no NVIDIA driver is installed";
  }
  return fmt::format("the NVIDIA driver supports CUDA {}; this program needs {}",
                     VersionName(supported), VersionName(CUDART_VERSION));
}

}  // namespace

CudaAvailability FindCuda(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorInsufficientDriver) return {false, DriverTooOld()};
  if (status != cudaSuccess) return {false, cudaGetErrorString(status)};
  if (device >= count)
    return {false, fmt::format("no GPU {}: this computer has {}", device, count)};
  cudaDeviceProp properties{};
  CheckCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  if (properties.major != kNeededMajor) {
    return {
        false,
        fmt::format("{} has compute capability {}.{}; the CUDA backend is built for 9.0 (Hopper)",
                    properties.name, properties.major, properties.minor)};
  }
  return {true, properties.name};
}

}  // namespace quail::infer::cuda
