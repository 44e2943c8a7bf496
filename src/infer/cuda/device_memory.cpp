#include "infer/cuda/device_memory.h"

#include <atomic>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

std::atomic<std::size_t> held_bytes{0};
std::atomic<std::size_t> peak_bytes{0};

double Gib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

void CountAllocation(std::size_t bytes) {
  const std::size_t held = held_bytes.fetch_add(bytes) + bytes;
  std::size_t peak = peak_bytes.load();
  while (peak < held && !peak_bytes.compare_exchange_weak(peak, held)) {
  }
}

}  // namespace

void CheckCuda(cudaError_t status, const char* what) {
  QUAIL_CHECK_MSG(status == cudaSuccess, "{}: {}", what, cudaGetErrorString(status));
}

void ThrowOnFault(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::kDevice, fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

std::byte* DeviceMemory::Allocate(std::size_t bytes, const char* what) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t available = 0;
    std::size_t total = 0;
    CheckCuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("{} needs {:.2f} GiB of device memory; {:.2f} of {:.2f} GiB are free",
                            what, Gib(bytes), Gib(available), Gib(total)));
  }
  ThrowOnFault(status, what);
  CountAllocation(bytes);
  return static_cast<std::byte*>(data);
}

void DeviceMemory::Free(std::byte* data, std::size_t bytes) {
  cudaFree(data);
  held_bytes.fetch_sub(bytes);
}

std::byte* PinnedMemory::Allocate(std::size_t bytes, const char* what) {
  void* data = nullptr;
  const cudaError_t status = cudaMallocHost(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("cannot lock {:.2f} GiB of host memory for {}", Gib(bytes), what));
  }
  ThrowOnFault(status, what);
  return static_cast<std::byte*>(data);
}

void PinnedMemory::Free(std::byte* data, std::size_t) { cudaFreeHost(data); }

std::size_t PeakDeviceBytes() { return peak_bytes.load(); }

std::size_t FreeDeviceBytes() {
  std::size_t available = 0;
  std::size_t total = 0;
  CheckCuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return available;
}

}  // namespace quail::infer::cuda
