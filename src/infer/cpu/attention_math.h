#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "infer/cpu/bf16_kernels.h"
#include "infer/cpu/cpu_kernels.h"
#include "infer/cpu/cpu_memory.h"

/// What attention computes on a block of 64 keys, for keys and values of each element type. Used
/// in this order: SetQuery for every vector; a block's Open, AddKeys for all its pieces, Close,
/// then Attend for the vectors that see it; Output at the end.
namespace quail::infer::cpu {

constexpr std::int32_t RoundUp(std::int32_t value, std::int32_t step) {
  return (value + step - 1) / step * step;
}

/// Vectors whose scores are made, turned into weights and used together, so that they stay in the
/// first-level cache: a multiple of what products take at a time.
inline constexpr std::int32_t kScoredVectors = 96;

/// body(first, count) of groups of at most kScoredVectors.
template <typename Body>
void ForEachGroup(std::int32_t vectors, const Body& body) {
  for (std::int32_t first = 0; first < vectors; first += kScoredVectors) {
    body(first, std::min(kScoredVectors, vectors - first));
  }
}

/// The running softmax and the unnormalised output f32 [vectors, width] of the vectors of a tile.
template <typename State>
class AttentionSums {
 public:
  AttentionSums(std::int32_t vectors, std::int32_t width, Buffer& output)
      : width_(width), output_(output), states_(static_cast<std::size_t>(vectors)) {
    const auto bytes = static_cast<std::size_t>(vectors * width) * sizeof(float);
    output_.Reserve(bytes);
    std::memset(output_.data(), 0, bytes);
  }
  State* state(std::int32_t vector) { return &states_[static_cast<std::size_t>(vector)]; }
  float* output(std::int32_t vector) { return output_.floats() + std::int64_t{vector} * width_; }
  std::int32_t width() const { return width_; }

 private:
  std::int32_t width_;
  Buffer& output_;
  std::vector<State> states_;
};

/// f32 throughout.
class F32Math {
 public:
  F32Math(const CpuKernels& kernels, std::int32_t dim, std::int32_t vectors, WorkerScratch& scratch)
      : kernels_(kernels),
        dim_(dim),
        scratch_(scratch),
        sums_(vectors, RoundUp(dim, kKeyBlock), scratch.output) {
    const auto block = static_cast<std::size_t>(kKeyBlock);
    const auto count = static_cast<std::size_t>(vectors);
    scratch_.queries.Reserve(count * static_cast<std::size_t>(dim) * sizeof(float));
    scratch_.scores.Reserve(kScoredVectors * block * sizeof(float));
    scratch_.keys.Reserve(static_cast<std::size_t>(dim) * block * sizeof(float));
    scratch_.values.Reserve(block * static_cast<std::size_t>(sums_.width()) * sizeof(float));
  }

  void SetQuery(std::int32_t vector, const float* query, float scale) {
    float* out = scratch_.queries.floats() + std::int64_t{vector} * dim_;
    for (std::int32_t i = 0; i < dim_; ++i) out[i] = query[i] * scale;
  }
  void Open(std::int32_t keys) {
    if (keys == kKeyBlock) return;
    // Scores of the columns past the last key are computed and thrown away; old bits there may be
    // slow or NaN.
    std::memset(scratch_.keys.data(), 0,
                static_cast<std::size_t>(dim_ * kKeyBlock) * sizeof(float));
  }
  void AddKeys(std::int32_t column, const std::byte* keys, const std::byte* values,
               std::int32_t count) {
    kernels_.transpose_keys(reinterpret_cast<const float*>(keys), count, dim_,
                            scratch_.keys.floats() + column);
    const std::size_t bytes = static_cast<std::size_t>(dim_) * sizeof(float);
    float* out = scratch_.values.floats() + std::int64_t{column} * sums_.width();
    for (std::int32_t i = 0; i < count; ++i) {
      std::memcpy(out + std::int64_t{i} * sums_.width(),
                  values + static_cast<std::size_t>(i) * bytes, bytes);
    }
  }
  void Close() {}
  /// A whole block that lies together, in place of Open, AddKeys and Close.
  void TakeBlock(const std::byte* keys, const std::byte* values) {
    AddKeys(0, keys, values, kKeyBlock);
  }

  /// Vectors [first, first + vectors) against the block's `keys`; `visible(vector)` of them count.
  template <typename Visible>
  void Attend(std::int32_t first, std::int32_t vectors, std::int32_t keys, Visible visible) {
    ForEachGroup(vectors, [&](std::int32_t begin, std::int32_t count) {
      AttendGroup(first + begin, count, keys, visible);
    });
  }

  float* Output(std::int32_t vector) { return sums_.output(vector); }
  float SumOf(std::int32_t vector) { return sums_.state(vector)->sum; }

 private:
  template <typename Visible>
  void AttendGroup(std::int32_t first, std::int32_t vectors, std::int32_t keys, Visible visible) {
    float* scores = scratch_.scores.floats();
    const std::int32_t width = sums_.width();
    kernels_.product64(vectors, dim_, scratch_.queries.floats() + std::int64_t{first} * dim_, dim_,
                       scratch_.keys.floats(), kKeyBlock, scores, kKeyBlock, false);
    for (std::int32_t i = 0; i < vectors; ++i) {
      kernels_.softmax_block(scores + std::int64_t{i} * kKeyBlock, visible(first + i),
                             sums_.state(first + i), sums_.output(first + i), width);
    }
    for (std::int32_t column = 0; column < width; column += kKeyBlock) {
      kernels_.product64(vectors, keys, scores, kKeyBlock, scratch_.values.floats() + column, width,
                         sums_.output(first) + column, width, true);
    }
  }

  const CpuKernels& kernels_;
  std::int32_t dim_;
  WorkerScratch& scratch_;
  AttentionSums<SoftmaxState> sums_;
};

/// bf16 queries, keys, weights and values; f32 sums.
class Bf16Math {
 public:
  Bf16Math(const CpuKernels& kernels, const Bf16Kernels& products, std::int32_t dim,
           std::int32_t vectors, WorkerScratch& scratch)
      : kernels_(kernels),
        products_(products),
        dim_(dim),
        depth_(RoundUp(dim, kBf16Depth)),
        scratch_(scratch),
        sums_(vectors, RoundUp(dim, kKeyBlock), scratch.output) {
    const auto block = static_cast<std::size_t>(kKeyBlock);
    const auto rows = static_cast<std::size_t>(vectors) + kBf16SpareRows;
    const auto depth = static_cast<std::size_t>(depth_);
    const auto width = static_cast<std::size_t>(sums_.width());
    scratch_.queries.Reserve(rows * depth * kBytes);
    scratch_.scores.Reserve(kScoredVectors * block * sizeof(float));
    scratch_.weights.Reserve((kScoredVectors + kBf16SpareRows) * block * kBytes);
    scratch_.plain_keys.Reserve(block * depth * kBytes);
    scratch_.plain_values.Reserve(block * width * kBytes);
    scratch_.keys.Reserve(block * depth * kBytes);
    scratch_.values.Reserve(block * width * kBytes);
    scratch_.row.Reserve(depth * sizeof(float));
    if (dim_ != depth_) {
      std::memset(scratch_.queries.data(), 0, rows * depth * kBytes);
      std::memset(scratch_.plain_keys.data(), 0, block * depth * kBytes);
    }
    if (dim_ != sums_.width()) {
      std::memset(scratch_.plain_values.data(), 0, block * width * kBytes);
    }
    products_.begin();
  }
  ~Bf16Math() { products_.end(); }
  Bf16Math(const Bf16Math&) = delete;
  Bf16Math& operator=(const Bf16Math&) = delete;

  void SetQuery(std::int32_t vector, const float* query, float scale) {
    scale *= 1.44269504088896341F;  // log2(e): the softmax is of powers of two
    float* scaled = scratch_.row.floats();
    for (std::int32_t i = 0; i < dim_; ++i) scaled[i] = query[i] * scale;
    kernels_.to_bf16(scaled, dim_, Halves(scratch_.queries) + std::int64_t{vector} * depth_);
  }
  void Open(std::int32_t keys) {
    // A key that is not there weighs nothing, and nothing times NaN would be NaN.
    const auto width = static_cast<std::size_t>(sums_.width());
    std::memset(scratch_.plain_values.data() + static_cast<std::size_t>(keys) * width * kBytes, 0,
                static_cast<std::size_t>(kKeyBlock - keys) * width * kBytes);
  }
  void AddKeys(std::int32_t column, const std::byte* keys, const std::byte* values,
               std::int32_t count) {
    CopyRows(keys, count, scratch_.plain_keys, column, depth_);
    CopyRows(values, count, scratch_.plain_values, column, sums_.width());
  }
  void Close() { Pack(Halves(scratch_.plain_keys), Halves(scratch_.plain_values)); }
  void TakeBlock(const std::byte* keys, const std::byte* values) {
    if (dim_ == sums_.width()) {
      Pack(reinterpret_cast<const std::uint16_t*>(keys),
           reinterpret_cast<const std::uint16_t*>(values));
      return;
    }
    AddKeys(0, keys, values, kKeyBlock);
    Close();
  }

  /// As F32Math::Attend.
  template <typename Visible>
  void Attend(std::int32_t first, std::int32_t vectors, std::int32_t, Visible visible) {
    ForEachGroup(vectors, [&](std::int32_t begin, std::int32_t count) {
      AttendGroup(first + begin, count, visible);
    });
  }

  float* Output(std::int32_t vector) { return sums_.output(vector); }
  float SumOf(std::int32_t vector) { return sums_.state(vector)->sum(); }

 private:
  static constexpr std::size_t kBytes = sizeof(std::uint16_t);

  template <typename Visible>
  void AttendGroup(std::int32_t first, std::int32_t vectors, Visible visible) {
    float* scores = scratch_.scores.floats();
    std::uint16_t* weights = Halves(scratch_.weights);
    const std::int32_t width = sums_.width();
    products_.product64({vectors, depth_, Halves(scratch_.queries) + std::int64_t{first} * depth_,
                         depth_, Halves(scratch_.keys), 2 * kKeyBlock, scores, kKeyBlock, false});
    for (std::int32_t i = 0; i < vectors; ++i) {
      const std::int64_t row = std::int64_t{i} * kKeyBlock;
      products_.softmax_block({scores + row, visible(first + i), sums_.state(first + i),
                               sums_.output(first + i), width, weights + row});
    }
    for (std::int32_t column = 0; column < width; column += kKeyBlock) {
      products_.product64({vectors, kKeyBlock, weights, kKeyBlock,
                           Halves(scratch_.values) + 2 * column, 2 * std::int64_t{width},
                           sums_.output(first) + column, width, true});
    }
  }

  static std::uint16_t* Halves(const Buffer& buffer) {
    return reinterpret_cast<std::uint16_t*>(buffer.data());
  }
  void Pack(const std::uint16_t* keys, const std::uint16_t* values) {
    products_.pack_keys(keys, depth_, Halves(scratch_.keys));
    products_.pack_values(values, sums_.width(), Halves(scratch_.values));
  }
  /// bf16 [count, dim] to rows [first, first + count) of bf16 [64, stride].
  void CopyRows(const std::byte* rows, std::int32_t count, const Buffer& out, std::int32_t first,
                std::int32_t stride) const {
    const std::size_t bytes = static_cast<std::size_t>(dim_) * kBytes;
    const std::size_t step = static_cast<std::size_t>(stride) * kBytes;
    std::byte* target = out.data() + static_cast<std::size_t>(first) * step;
    if (bytes == step) {
      std::memcpy(target, rows, bytes * static_cast<std::size_t>(count));
      return;
    }
    for (std::int32_t i = 0; i < count; ++i) {
      std::memcpy(target + static_cast<std::size_t>(i) * step,
                  rows + static_cast<std::size_t>(i) * bytes, bytes);
    }
  }

  const CpuKernels& kernels_;
  const Bf16Kernels& products_;
  std::int32_t dim_;
  std::int32_t depth_;  ///< D rounded up to what a product reads at a time
  WorkerScratch& scratch_;
  AttentionSums<LaneSoftmax> sums_;
};

}  // namespace quail::infer::cpu
