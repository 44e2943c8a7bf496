#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "spec/model_spec.h"

namespace quail::spec {

/// Measured rates relative to the peaks, and what an ask costs beside its tokens.
struct MeasuredRates {
  double gemm_fraction = 1;
  double attention_fraction = 1;
  double ask_seconds = 0;
  std::string source;
};

/// Peaks of a device; dense rates, FLOP/s. A rate of 0 means the device has no such units.
struct DeviceSpec {
  std::string name;
  double memory_bytes = 0;
  double bandwidth = 0;  ///< bytes/s
  double f32_rate = 0;
  double bf16_rate = 0;  ///< also f16
  double fp8_rate = 0;
  double int8_rate = 0;
  std::string source;
  std::optional<MeasuredRates> measured;
  /// The rates are neither a data sheet's nor measured: no bound can be made of them.
  bool assumed = false;

  /// The rate of a linear layer whose weights are stored so: of the narrowest units that can do it.
  double GemmRate(WeightType type) const;
  /// Attention runs in bf16, on devices without such units in f32; beside int8 layers it may
  /// multiply bytes too.
  double AttentionRate(WeightType layers) const {
    return GemmRate(layers == WeightType::kInt8 ? WeightType::kInt8 : WeightType::kBf16);
  }
};

/// Known devices, each number with its source.
std::span<const DeviceSpec> KnownDevices();
/// The row whose name is part of `name`, as a driver reports it ("NVIDIA H100 80GB HBM3"); nullptr
/// if none.
const DeviceSpec* FindDevice(std::string_view name);

/// A computer's row before it was calibrated: an order of magnitude, for plans only.
DeviceSpec UncalibratedCpu(unsigned threads);

}  // namespace quail::spec
