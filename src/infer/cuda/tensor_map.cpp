#include "infer/cuda/tensor_map.h"

#include <cuda_runtime.h>

#include "base/check.h"
#include "infer/cuda/device_memory.h"

namespace quail::infer::cuda {
namespace {

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// The driver's encoder, found at run time: no link to libcuda.
EncodeTiled FindEncoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  CheckCuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                             cudaEnableDefault, &result),
            "cuTensorMapEncodeTiled");
  QUAIL_CHECK(function != nullptr);
  return reinterpret_cast<EncodeTiled>(function);
}

}  // namespace

CUtensorMap EncodeTensorMap(const TensorMapShape& shape) {
  static const EncodeTiled encode = FindEncoder();
  CUtensorMap map;
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult status =
      encode(&map, shape.type, shape.rank, const_cast<void*>(shape.data), shape.dims, shape.strides,
             shape.box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  QUAIL_CHECK_MSG(status == CUDA_SUCCESS,
                  "cuTensorMapEncodeTiled: {} for dims {} x {} x {}, box {} x {} x {}",
                  static_cast<int>(status), shape.dims[0], shape.dims[1], shape.dims[2],
                  shape.box[0], shape.box[1], shape.box[2]);
  return map;
}

CUtensorMap ByteMatrixMap(const void* data, std::uint64_t rows, std::uint64_t columns,
                          std::uint32_t box_rows) {
  return EncodeTensorMap({data,
                          CU_TENSOR_MAP_DATA_TYPE_UINT8,
                          2,
                          {columns, rows, 1},
                          {columns, 0},
                          {128, box_rows, 1},
                          CU_TENSOR_MAP_SWIZZLE_128B});
}

CUtensorMap ScalesMap(const float* data, std::uint64_t rows, std::uint64_t column_blocks,
                      std::int64_t pitch, std::uint32_t box_rows) {
  return EncodeTensorMap({data,
                          CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                          2,
                          {rows, column_blocks, 1},
                          {static_cast<std::uint64_t>(pitch) * sizeof(float), 0},
                          {box_rows, 1, 1},
                          CU_TENSOR_MAP_SWIZZLE_NONE});
}

}  // namespace quail::infer::cuda
