#pragma once

#include <cstdint>
#include <memory>

#include "infer/weights/block_scale.h"
#include "infer/weights/weight_source.h"

namespace quail::infer {

/// Round to the nearest e4m3 (OCP fp8, no infinities), ties to even, saturating at +-448; NaN stays
/// NaN.
std::uint8_t FloatToFp8(float value);

/// `source` with its linear layers (names ending in "_proj.weight" whose rows and columns are
/// multiples of 128) requantised to fp8 with one fp32 scale a 128 x 128 block, as block-fp8
/// checkpoints are made; kPowerOfTwo over such a checkpoint is what engines with ue8m0 scales do
/// when they load it. Other tensors pass through. Both views of a tensor, ReadRows and
/// fp8_block_data, give the same values.
std::shared_ptr<const WeightSource> QuantizeToFp8Blocks(std::shared_ptr<const WeightSource> source,
                                                        BlockScale rounding = BlockScale::kExact);

}  // namespace quail::infer
