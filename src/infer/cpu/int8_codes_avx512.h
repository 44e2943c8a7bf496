#pragma once

#include <cstdint>

#include "infer/cpu/int8_attention.h"

/// The codes of Int8Attention, and how its products take them.
namespace quail::infer::cpu {

float QuantiseQuery(const float* query, std::int32_t dim, std::int32_t width, std::uint8_t* codes);
void QuantiseVector(std::uint16_t* vector, std::int32_t dim);
void PackKeys(const Int8Vectors& keys, Int8Block* block);
void PackValues(const Int8Vectors& values, Int8Block* block);

}  // namespace quail::infer::cpu
