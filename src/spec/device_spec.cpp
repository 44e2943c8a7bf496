#include "spec/device_spec.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quail::spec {

namespace {

/// Data sheets give rates with structured sparsity; the dense ones are half of them.
const std::array<DeviceSpec, 6>& Table() {
  static const std::array<DeviceSpec, 6> table = {
      DeviceSpec{"H100", 80e9, 3.35e12, 66.9e12, 0.9895e15, 1.979e15, 1.979e15,
                 "NVIDIA H100 Tensor Core GPU data sheet, SXM5",
                 MeasuredRates{0.467, 0.62, 37e-6,
                               "published calibration on one H100: 7.867 us a token against 3.672, "
                               "attention at 56-69 % of peak, 37 us a join suffix"}},
      DeviceSpec{"H200", 141e9, 4.8e12, 66.9e12, 0.9895e15, 1.979e15, 1.979e15,
                 "NVIDIA H200 Tensor Core GPU data sheet, SXM", std::nullopt},
      DeviceSpec{"A100", 80e9, 2.039e12, 19.5e12, 312e12, 0, 624e12,
                 "NVIDIA A100 80GB Tensor Core GPU data sheet, SXM4", std::nullopt},
      DeviceSpec{"L40S", 48e9, 864e9, 91.6e12, 362.05e12, 733e12, 733e12, "NVIDIA L40S data sheet",
                 std::nullopt},
      DeviceSpec{"RTX 4090", 24e9, 1.008e12, 82.6e12, 165.2e12, 330.3e12, 660.6e12,
                 "NVIDIA Ada GPU architecture white paper, appendix A (FP32 accumulation)",
                 std::nullopt},
      DeviceSpec{"B200", 180e9, 7.7e12, 75e12, 2.25e15, 4.5e15, 4.5e15,
                 "NVIDIA HGX B200 data sheet, one of eight GPUs", std::nullopt},
  };
  return table;
}

}  // namespace

double DeviceSpec::GemmRate(WeightType type) const {
  const double wide = bf16_rate > 0 ? bf16_rate : f32_rate;
  switch (type) {
    case WeightType::kF32:
      return f32_rate;
    case WeightType::kF16:
    case WeightType::kBf16:
      return wide;
    case WeightType::kFp8Block:
    case WeightType::kFp8Row:
      return fp8_rate > 0 ? fp8_rate : wide;
    case WeightType::kInt8:
      return int8_rate > 0 ? int8_rate : wide;
  }
  return wide;
}

std::span<const DeviceSpec> KnownDevices() { return Table(); }

const DeviceSpec* FindDevice(std::string_view name) {
  for (const DeviceSpec& device : Table()) {
    if (name.find(device.name) != std::string_view::npos) return &device;
  }
  return nullptr;
}

DeviceSpec UncalibratedCpu(unsigned threads) {
  const double cores = std::max(1U, threads);
  DeviceSpec device;
  device.name = "CPU (not calibrated)";
  device.bandwidth = 10e9;
  device.f32_rate = 40e9 * cores;
  device.assumed = true;
  device.source = "assumed: 40 GFLOP/s a core, 10 GB/s; run quail calibrate";
  return device;
}

}  // namespace quail::spec
