#include <cuda_runtime.h>
#include <fmt/format.h>

#include "infer/cuda/cuda_backend.h"
#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {
namespace {

constexpr int kNeededMajor = 9;

}  // namespace

CudaAvailability FindCuda(int device) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorInsufficientDriver) {
    return {false, fmt::format("the NVIDIA driver is older than CUDA {}.{} needs",
                               CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10)};
  }
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
