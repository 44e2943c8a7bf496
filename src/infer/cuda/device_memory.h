#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

namespace quail::infer::cuda {

/// CHECKs that a CUDA call which only our own bug can make fail succeeded; names the call.
void CheckCuda(cudaError_t status, const char* what);
/// Throws Error{kDevice} when the device reports a fault.
void ThrowOnFault(cudaError_t status, const char* what);

/// Memory of the device.
struct DeviceMemory {
  /// Throws Error{kOutOfMemory} with the size wanted and the memory free.
  static std::byte* Allocate(std::size_t bytes, const char* what);
  static void Free(std::byte* data, std::size_t bytes);
};

/// Page-locked memory of the host, which the copy engines read and write.
struct PinnedMemory {
  /// Throws Error{kOutOfMemory} with the size wanted.
  static std::byte* Allocate(std::size_t bytes, const char* what);
  static void Free(std::byte* data, std::size_t bytes);
};

/// Owns a block of `Memory`. `what` names it in an error.
template <typename Memory>
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t bytes, const char* what) : size_(bytes) {
    if (bytes > 0) data_ = Memory::Allocate(bytes, what);
  }
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) Memory::Free(data_, size_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void Swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

using DeviceBuffer = Buffer<DeviceMemory>;
using PinnedBuffer = Buffer<PinnedMemory>;

/// Most bytes of device memory that DeviceBuffers of this process have held at a time.
std::size_t PeakDeviceBytes();
/// Bytes of device memory that can still be allocated.
std::size_t FreeDeviceBytes();

}  // namespace quail::infer::cuda
