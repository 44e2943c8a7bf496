#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "spec/model_spec.h"

namespace quail::infer::cuda {

/// Activations of the chunk that runs; chunks follow each other on the stream and share them. T is
/// the largest chunk.
class Activations {
 public:
  /// Throws Error{kOutOfMemory}.
  void Allocate(const spec::ModelSpec& spec, bool fp8, std::int32_t rows);
  /// Fills everything with NaN (all bits set is one in bf16, e4m3 and fp32).
  void Poison();

  __nv_bfloat16* residual() const { return residual_.as<__nv_bfloat16>(); }            ///< [T, C]
  __nv_bfloat16* kept_residual() const { return kept_residual_.as<__nv_bfloat16>(); }  ///< [T, C]
  __nv_bfloat16* heads() const { return heads_.as<__nv_bfloat16>(); }  ///< [T, (H + 2K) D]
  __nv_bfloat16* kept_queries() const { return kept_queries_.as<__nv_bfloat16>(); }  ///< [T, H D]
  __nv_bfloat16* delta() const { return delta_.as<__nv_bfloat16>(); }                ///< [T, C]
  __nv_bfloat16* gate_up() const { return gate_up_.as<__nv_bfloat16>(); }            ///< [T, 2F]
  /// The kept rows before the head, always bf16 [T, C].
  __nv_bfloat16* kept_final() const { return kept_normed_.as<__nv_bfloat16>(); }

  // Inputs of products, in the form they compute with. Their scales share one buffer but for the
  // kept rows': each is read before the next is made.
  Activation normed() const { return Form(normed_, scales_); }                 ///< [T, C]
  Activation kept_normed() const { return Form(kept_input(), kept_scales_); }  ///< [T, C]
  Activation attention() const { return Form(attention_, scales_); }           ///< [T, H D]
  Activation inner() const { return Form(inner_, scales_); }                   ///< [T, F]

 private:
  const DeviceBuffer& kept_input() const { return fp8_ ? kept_fp8_ : kept_normed_; }
  Activation Form(const DeviceBuffer& values, const DeviceBuffer& scales) const {
    if (!fp8_) return {values.as<__nv_bfloat16>(), nullptr, nullptr, 0};
    return {nullptr, values.as<__nv_fp8_e4m3>(), scales.as<float>(), scale_pitch_};
  }

  bool fp8_ = false;
  std::int64_t scale_pitch_ = 0;
  DeviceBuffer residual_;
  DeviceBuffer kept_residual_;
  DeviceBuffer normed_;
  DeviceBuffer kept_normed_;
  DeviceBuffer kept_fp8_;
  DeviceBuffer heads_;
  DeviceBuffer kept_queries_;
  DeviceBuffer attention_;
  DeviceBuffer delta_;
  DeviceBuffer gate_up_;
  DeviceBuffer inner_;
  DeviceBuffer scales_;  ///< fp32 [max(C, H D, F) / 128, scale_pitch_]
  DeviceBuffer kept_scales_;
};

}  // namespace quail::infer::cuda
