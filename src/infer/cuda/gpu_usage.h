#pragma once

#include <memory>

#include "base/clock.h"
#include "infer/backend.h"

namespace quail::infer::cuda {

/// Memory, clock, power and energy of one GPU. The last three come from the driver's management
/// library (NVML), found at run time: where it is missing they are not measured. One thread.
class GpuUsage {
 public:
  explicit GpuUsage(int cuda_device);
  ~GpuUsage();

  /// Takes a sample of clock and power (about a millisecond of processor time) when the last one is
  /// 100 ms old. To be called while the GPU is busy.
  void SampleSometimes();
  DeviceUsage Read();

 private:
  class Nvml;

  std::unique_ptr<Nvml> nvml_;  ///< null: cannot be measured
  base::Stopwatch since_sample_;
  DeviceUsage usage_;
};

}  // namespace quail::infer::cuda
