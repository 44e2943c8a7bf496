#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "infer/cpu/attention_math.h"
#include "infer/cpu/int8_attention.h"

namespace quail::infer::cpu {

/// As F32Math, of keys and values that are codes, on products of bytes.
class Int8Math {
 public:
  Int8Math(const Int8Attention& attention, std::int32_t dim, std::int32_t vectors,
           WorkerScratch& scratch)
      : attention_(attention),
        dim_(dim),
        width_(RoundUp(dim, kInt8Width)),
        scratch_(scratch),
        sums_(vectors, width_, scratch.output),
        maxima_(static_cast<std::size_t>(vectors), -std::numeric_limits<float>::infinity()) {
    const auto block_bytes = kKeyBlock * static_cast<std::size_t>(width_);
    const auto count = static_cast<std::size_t>(vectors);
    scratch.keys.Reserve(block_bytes);
    scratch.values.Reserve(block_bytes);
    for (Buffer* vectors_of_pieces : {&scratch.plain_keys, &scratch.plain_values}) {
      vectors_of_pieces->Reserve(kKeyBlock * VectorBytes(width_));
      if (dim_ != width_)
        std::memset(vectors_of_pieces->data(), 0, kKeyBlock * VectorBytes(width_));
    }
    scratch_.queries.Reserve(count * static_cast<std::size_t>(width_));
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
    CopyVectors(keys, count, scratch_.plain_keys, column);
    CopyVectors(values, count, scratch_.plain_values, column);
  }
  void Close() { Pack(scratch_.plain_keys.data(), scratch_.plain_values.data()); }
  void TakeBlock(const std::byte* keys, const std::byte* values) {
    if (dim_ == width_) return Pack(keys, values);
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
                       scales() + first, seen, maxima_.data() + first, sums_.state(first)->data(),
                       sums_.output(first)},
                      block_);
  }

  float* Output(std::int32_t vector) { return sums_.output(vector); }
  float SumOf(std::int32_t vector) {
    const std::array<float, 16>& lanes = *sums_.state(vector);
    return std::accumulate(lanes.begin(), lanes.end(), 0.0F);
  }

 private:
  static std::int8_t* Codes(const Buffer& buffer) {
    return reinterpret_cast<std::int8_t*>(buffer.data());
  }
  float* scales() const { return scratch_.scores.floats(); }
  /// Of codes in the place of bf16.
  static std::size_t VectorBytes(std::int32_t dim) {
    return static_cast<std::size_t>(dim) * sizeof(std::uint16_t);
  }
  void Pack(const std::byte* keys, const std::byte* values) {
    const auto vectors = [&](const std::byte* first) {
      return Int8Vectors{reinterpret_cast<const std::int8_t*>(first),
                         static_cast<std::int64_t>(VectorBytes(width_)), width_};
    };
    attention_.pack_keys(vectors(keys), &block_);
    attention_.pack_values(vectors(values), &block_);
  }
  /// To vectors [first, first + count) of `out`, zeros behind codes staying what they are.
  void CopyVectors(const std::byte* vectors, std::int32_t count, const Buffer& out,
                   std::int32_t first) const {
    const std::size_t bytes = VectorBytes(dim_), step = VectorBytes(width_);
    std::byte* target = out.data() + static_cast<std::size_t>(first) * step;
    if (bytes == step) {
      std::memcpy(target, vectors, bytes * static_cast<std::size_t>(count));
      return;
    }
    const auto dim = static_cast<std::size_t>(dim_), width = static_cast<std::size_t>(width_);
    for (std::int32_t i = 0; i < count; ++i, target += step, vectors += bytes) {
      std::memcpy(target, vectors, dim);
      std::memcpy(target + width, vectors + dim, sizeof(float));
    }
  }

  const Int8Attention& attention_;
  std::int32_t dim_;
  std::int32_t width_;
  WorkerScratch& scratch_;
  AttentionSums<std::array<float, 16>> sums_;
  std::vector<float> maxima_;
  Int8Block block_;
};

}  // namespace quail::infer::cpu
