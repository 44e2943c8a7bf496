#include <cuda_runtime.h>

#include <string>

#include "infer/cuda/cuda_backend.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/device_support.h"

namespace quail::infer::cuda {
namespace {

/// What there is to know up to the first fault, which `fault` then says.
DeviceFacts ReadFacts(int device, cudaError_t& fault) {
  DeviceFacts facts;
  facts.runtime_version = CUDART_VERSION;
  facts.device = device;
  CheckCuda(cudaDriverGetVersion(&facts.driver_version), "cudaDriverGetVersion");
  fault = cudaGetDeviceCount(&facts.devices);
  static_cast<void>(cudaGetLastError());
  if (fault != cudaSuccess || device >= facts.devices) return facts;
  cudaDeviceProp properties{};
  CheckCuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  return facts;
}

}  // namespace

CudaAvailability FindCuda(int device) {
  cudaError_t fault = cudaSuccess;
  const DeviceFacts facts = ReadFacts(device, fault);
  // A driver that is missing or too old is also a fault of the first call; its numbers say more.
  const bool driver_is_enough =
      facts.driver_version != 0 && facts.driver_version >= facts.runtime_version;
  if (fault != cudaSuccess && driver_is_enough) return {false, cudaGetErrorString(fault)};
  if (const auto reason = WhyUnusable(facts)) return {false, *reason};
  return {true, facts.name};
}

}  // namespace quail::infer::cuda
