#pragma once

#include <cstdint>

#include "infer/cpu/attention_math.h"
#include "infer/cpu/int8_attention.h"

namespace quail::infer::cpu {

/// As F32Math, of bf16 keys and values, on products of bytes.
class Int8Math {
 public:
  Int8Math(const Int8Attention& attention, std::int32_t dim, std::int32_t vectors,
           WorkerScratch& scratch)
      : attention_(attention),
        dim_(dim),
        width_(RoundUp(dim, kInt8Width)),
        scratch_(scratch),
        sums_(vectors, width_, scratch.output) {
    const auto block_bytes = static_cast<std::size_t>(kKeyBlock * width_);
    const auto count = static_cast<std::size_t>(vectors);
    for (Buffer* buffer :
         {&scratch.keys, &scratch.values, &scratch.plain_keys, &scratch.plain_values}) {
      buffer->Reserve(block_bytes);
    }
    scratch_.queries.Reserve(count * static_cast<std::size_t>(width_));
    scratch_.row.Reserve(2 * kKeyBlock * sizeof(float));
    scratch_.scores.Reserve(count * sizeof(float));
    scratch_.weights.Reserve(count * sizeof(std::int32_t));
    block_.width = width_;
    block_.keys = Codes(scratch.keys);
    block_.values = Codes(scratch.values);
  }

  void SetQuery(std::int32_t vector, const float* query, float scale) {
    constexpr float kLog2E = 1.44269504088896341F;  // the softmax is of powers of two
    auto* codes = reinterpret_cast<std::uint8_t*>(scratch_.queries.data());
    scales()[vector] =
        scale * kLog2E *
        attention_.quantise_query(query, dim_, width_, codes + std::int64_t{vector} * width_);
  }
  void Open(std::int32_t) {}
  void AddKeys(std::int32_t column, const std::byte* keys, const std::byte* values,
               std::int32_t count) {
    const auto quantise = [&](const std::byte* rows, const Buffer& codes, float* largest) {
      attention_.quantise({reinterpret_cast<const std::uint16_t*>(rows), count, dim_, width_,
                           Codes(codes) + std::int64_t{column} * width_, largest + column});
    };
    quantise(keys, scratch_.plain_keys, largest_keys());
    quantise(values, scratch_.plain_values, largest_values());
  }
  void Close() {
    attention_.pack_keys(Codes(scratch_.plain_keys), largest_keys(), &block_);
    attention_.pack_values(Codes(scratch_.plain_values), largest_values(), &block_);
  }
  void TakeBlock(const std::byte* keys, const std::byte* values) {
    AddKeys(0, keys, values, kKeyBlock);
    Close();
  }

  template <typename Visible>
  void Attend(std::int32_t first, std::int32_t vectors, std::int32_t, Visible visible) {
    auto* seen = reinterpret_cast<std::int32_t*>(scratch_.weights.data());
    for (std::int32_t i = 0; i < vectors; ++i) seen[i] = visible(first + i);
    attention_.attend({vectors,
                       reinterpret_cast<const std::uint8_t*>(scratch_.queries.data()) +
                           std::int64_t{first} * width_,
                       scales() + first, seen, sums_.state(first), sums_.output(first)},
                      block_);
  }

  float* Output(std::int32_t vector) { return sums_.output(vector); }
  float SumOf(std::int32_t vector) { return sums_.state(vector)->sum(); }

 private:
  static std::int8_t* Codes(const Buffer& buffer) {
    return reinterpret_cast<std::int8_t*>(buffer.data());
  }
  float* scales() const { return scratch_.scores.floats(); }
  float* largest_keys() const { return scratch_.row.floats(); }
  float* largest_values() const { return scratch_.row.floats() + kKeyBlock; }

  const Int8Attention& attention_;
  std::int32_t dim_;
  std::int32_t width_;
  WorkerScratch& scratch_;
  AttentionSums<LaneSoftmax> sums_;
  Int8Block block_;
};

}  // namespace quail::infer::cpu
