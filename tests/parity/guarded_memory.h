#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "infer/cuda/device_memory.h"

namespace quail::parity {

inline constexpr unsigned char kSentinel = 0xC5;

template <typename T>
bool IsSentinel(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{kSentinel}; });
}
template <typename T>
bool IsSentinel(std::span<T> values) {
  return IsSentinel(std::span<const T>(values));
}

/// Device memory for `count` values, full of sentinels and with more of them on both sides: when it
/// goes, nothing may have been written there.
template <typename T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(std::size_t count)
      : count_(count), memory_(count * sizeof(T) + 2 * kGuard, "test memory") {
    infer::cuda::CheckCuda(cudaMemset(memory_.data(), kSentinel, memory_.size()), "sentinels");
    infer::cuda::CheckCuda(cudaDeviceSynchronize(), "sentinels");
  }
  explicit Guarded(const std::vector<T>& values) : Guarded(values.size()) {
    infer::cuda::CheckCuda(
        cudaMemcpy(get(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "test copy");
    infer::cuda::CheckCuda(cudaDeviceSynchronize(), "test copy");
  }
  Guarded(Guarded&& other) noexcept = default;
  Guarded& operator=(Guarded&& other) noexcept {
    std::swap(count_, other.count_);
    memory_ = std::move(other.memory_);
    return *this;
  }
  ~Guarded() {
    if (memory_.data() == nullptr) return;
    for (const std::size_t at : {std::size_t{0}, memory_.size() - kGuard}) {
      std::vector<unsigned char> guard(kGuard);
      infer::cuda::CheckCuda(
          cudaMemcpy(guard.data(), memory_.data() + at, kGuard, cudaMemcpyDeviceToHost), "guard");
      EXPECT_TRUE(IsSentinel(std::span(guard))) << "written outside of an output";
    }
  }

  T* get() const { return reinterpret_cast<T*>(memory_.data() + kGuard); }

  /// Waits for the device.
  std::vector<T> Read() const { return Read(0, count_); }
  std::vector<T> Read(std::size_t first, std::size_t count) const {
    std::vector<T> values(count);
    infer::cuda::ThrowOnFault(cudaDeviceSynchronize(), "the kernel under test");
    infer::cuda::CheckCuda(
        cudaMemcpy(values.data(), get() + first, count * sizeof(T), cudaMemcpyDeviceToHost),
        "test copy");
    return values;
  }

 private:
  static constexpr std::size_t kGuard = 4096;

  std::size_t count_ = 0;
  infer::cuda::DeviceBuffer memory_;
};

}  // namespace quail::parity
