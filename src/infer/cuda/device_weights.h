#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "infer/cuda/device_memory.h"
#include "infer/weights/weight_source.h"

namespace quail::infer::cuda {

/// A matrix [rows, columns] on the device: bf16, or e4m3 with fp32 scales [rows / 128, columns /
/// 128].
struct DeviceWeight {
  DeviceBuffer values;
  DeviceBuffer scales;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool is_fp8 = false;
};

/// Uploads the parts stacked by rows. With `allow_fp8`, parts that are all stored block-scaled are
/// taken as they are: never requantised (case 62). Else bf16, rounded to nearest from f32 where it
/// is not stored so.
DeviceWeight UploadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts,
                          bool allow_fp8);
DeviceWeight UploadRows(const WeightTensor& matrix, std::int64_t begin, std::int64_t end);
DeviceWeight UploadPickedRows(const WeightTensor& matrix, std::span<const std::int32_t> rows);

}  // namespace quail::infer::cuda
