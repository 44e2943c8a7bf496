#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_linear.h"

namespace quail::infer::cpu {

/// Moves f32 values to and from the element type that matrices are multiplied in.
class Elements {
 public:
  Elements(const CpuKernels& kernels, ElementType type) : kernels_(&kernels), type_(type) {}

  ElementType type() const { return type_; }
  std::size_t bytes() const { return SizeOf(type_); }

  void Store(const float* values, std::int64_t count, std::byte* out) const {
    if (type_ == ElementType::kF32) {
      std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      kernels_->to_bf16(values, static_cast<std::int32_t>(count),
                        reinterpret_cast<std::uint16_t*>(out));
    }
  }
  void Load(const std::byte* values, std::int64_t count, float* out) const {
    if (type_ == ElementType::kF32) {
      std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
    } else {
      kernels_->from_bf16(reinterpret_cast<const std::uint16_t*>(values),
                          static_cast<std::int32_t>(count), out);
    }
  }

 private:
  const CpuKernels* kernels_;
  ElementType type_;
};

}  // namespace quail::infer::cpu
