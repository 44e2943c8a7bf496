#include "infer/cuda/device_memory.h"

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

double Gib(std::size_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

}  // namespace

void CheckCuda(cudaError_t status, const char* what) {
  QUAIL_CHECK_MSG(status == cudaSuccess, "{}: {}", what, cudaGetErrorString(status));
}

void ThrowOnFault(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ErrorCode::kDevice, fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

DeviceBuffer::DeviceBuffer(std::size_t bytes, const char* what) : size_(bytes) {
  if (bytes == 0) return;
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
  data_ = static_cast<std::byte*>(data);
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

PinnedBuffer::PinnedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  const cudaError_t status = cudaMallocHost(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("cannot lock {:.2f} GiB of host memory for transfers", Gib(bytes)));
  }
  ThrowOnFault(status, "cudaMallocHost");
  data_ = static_cast<std::byte*>(data);
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) cudaFreeHost(data_);
}

}  // namespace quail::infer::cuda
