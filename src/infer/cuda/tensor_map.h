#pragma once

#include <cuda.h>

#include <cstdint>

namespace quail::infer::cuda {

/// A tensor of up to three dimensions, innermost first, that the copy engine reads or writes in
/// boxes; what lies outside is read as zeros and not written.
struct TensorMapShape {
  const void* data = nullptr;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  std::uint32_t rank = 2;
  std::uint64_t dims[3] = {};  ///< elements
  std::uint64_t strides[2] =
      {};                     ///< bytes between neighbours in dimensions 1 and 2, multiples of 16
  std::uint32_t box[3] = {};  ///< elements
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
};

/// CHECKs that the driver takes the shape.
CUtensorMap EncodeTensorMap(const TensorMapShape& shape);

/// The map of a row-major matrix [rows, columns] of bytes (e4m3), read and written in boxes whose
/// rows are 128 bytes, swizzled.
CUtensorMap ByteMatrixMap(const void* data, std::uint64_t rows, std::uint64_t columns,
                          std::uint32_t box_rows);
/// The map of an activation's scales: float [columns / 128, pitch], read for `box_rows` rows of one
/// column block at once.
CUtensorMap ScalesMap(const float* data, std::uint64_t rows, std::uint64_t column_blocks,
                      std::int64_t pitch, std::uint32_t box_rows);

}  // namespace quail::infer::cuda
