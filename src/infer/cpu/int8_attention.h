#pragma once

#include <array>
#include <cstdint>

#include "infer/cpu/cpu_kernels.h"

/// Attention's products of bytes (VNNI). Keys and values are given their codes when they are made,
/// and kept as such. A query and a key have one scale each for their signed
/// codes, a value one that is folded into its weight; the weights of a block are codes from 0 to
/// 255 of the row's largest there. So a row's result depends on no other row, and a key's or
/// value's codes on no other key.
namespace quail::infer::cpu {

/// Widths of queries, keys and values are padded to a multiple of this with zeros.
inline constexpr std::int32_t kInt8Width = 64;
/// Fewer values leave no room for a scale behind their codes.
inline constexpr std::int32_t kLeastInt8Dim = 4;

/// Keys and values of a block. Of keys that are not there anything may be in it.
struct Int8Block {
  std::int32_t width = 0;
  std::int8_t* keys = nullptr;    ///< [width / 4, 64, 4]
  std::int8_t* values = nullptr;  ///< [16, width, 4], keys in the order that weights are packed in
  alignas(64) std::array<std::int32_t, kKeyBlock> bias{};  ///< -128 times the sum of a key's codes
  alignas(64) std::array<float, kKeyBlock> key_scale{};
  alignas(64) std::array<float, kKeyBlock> log_value_scale{};  ///< to the base of two
  alignas(64) std::array<float, kKeyBlock> inverse_value_scale{};
};

/// How far a row's maximum may lag behind its largest score, that of a key and the logarithm of its
/// value's scale.
inline constexpr float kInt8SoftmaxSlack = 32;

/// Rows that meet a block, one after the other.
struct Int8Rows {
  std::int32_t count = 0;
  const std::uint8_t* queries = nullptr;  ///< codes + 128 [count, width]
  const float* query_scales = nullptr;    ///< [count], 1 / sqrt(D) and log2(e) in them
  const std::int32_t* visible = nullptr;  ///< [count], keys of the block: 0 < visible <= 64
  // The running softmax, in powers of two:
  float* maxima = nullptr;  ///< [count], at first minus infinity; may lag behind the largest score
  float* sums = nullptr;    ///< [count, 16] by lane, of the weights before rounding
  float* output = nullptr;  ///< f32 [count, width], unnormalised
};

/// 64 keys or values: each codes [width], zeros behind its own, and the largest magnitude of what
/// they stand for, f32.
struct Int8Vectors {
  const std::int8_t* codes = nullptr;  ///< of the first
  std::int64_t stride = 0;             ///< bytes, even
  std::int32_t width = 0;
};

/// A row that is not finite makes NaN of what sees it.
struct Int8Attention {
  /// f32 [dim] to codes + 128 [width]; returns their scale.
  float (*quantise_query)(const float* query, std::int32_t dim, std::int32_t width,
                          std::uint8_t* codes);
  /// A key or value, bf16 [dim], becomes codes [dim] and behind them the largest magnitude, f32, in
  /// its own place. REQUIRES: kLeastInt8Dim <= dim.
  void (*quantise)(std::uint16_t* vector, std::int32_t dim);
  /// To a block of the same width.
  void (*pack_keys)(const Int8Vectors& keys, Int8Block* block);
  void (*pack_values)(const Int8Vectors& values, Int8Block* block);
  void (*attend)(const Int8Rows& rows, const Int8Block& block);
};

/// nullptr where this processor lacks AVX-512 VNNI.
const Int8Attention* SelectInt8Attention();

}  // namespace quail::infer::cpu
