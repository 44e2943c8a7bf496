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

}  // namespace quail::infer::cuda
