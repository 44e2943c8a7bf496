#include "infer/weights/fp8_block_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "infer/weights/block_formats.h"

namespace quail::infer {
namespace {

constexpr std::int64_t kBlock = 128;

bool IsLinear(const WeightTensor& tensor) {
  return tensor.name().ends_with("_proj.weight") && tensor.rows() % kBlock == 0 &&
         tensor.columns() % kBlock == 0;
}

class Fp8BlockTensor final : public WeightTensor {
 public:
  Fp8BlockTensor(std::shared_ptr<const WeightTensor> tensor, BlockScale rounding)
      : tensor_(std::move(tensor)), rounding_(rounding) {}

  const std::string& name() const override { return tensor_->name(); }
  std::int64_t rows() const override { return tensor_->rows(); }
  std::int64_t columns() const override { return tensor_->columns(); }

  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    const Quantized& quantized = Get();
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t column = 0; column < columns(); ++column) {
        const auto value = static_cast<std::uint8_t>(quantized.values[Index(row, column)]);
        *out++ = Fp8ToFloat(value) * quantized.scales[BlockIndex(row, column)];
      }
    }
  }

  std::optional<Fp8BlockData> fp8_block_data() const override {
    const Quantized& quantized = Get();
    return Fp8BlockData{quantized.values, std::as_bytes(std::span(quantized.scales)), false};
  }

 private:
  struct Quantized {
    std::vector<std::byte> values;
    std::vector<float> scales;
  };

  std::size_t Index(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(row * columns() + column);
  }
  std::size_t BlockIndex(std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(row / kBlock * (columns() / kBlock) + column / kBlock);
  }

  const Quantized& Get() const {
    std::call_once(once_, [this] {
      quantized_.values.resize(static_cast<std::size_t>(rows() * columns()));
      quantized_.scales.resize(quantized_.values.size() / (kBlock * kBlock));
      base::ThreadPool pool;
      pool.ForEach(static_cast<std::size_t>(rows() / kBlock), [this](std::size_t band) {
        QuantizeBand(static_cast<std::int64_t>(band) * kBlock);
      });
    });
    return quantized_;
  }

  /// Rows [first, first + 128): one row of blocks.
  void QuantizeBand(std::int64_t first) const {
    std::vector<float> band(static_cast<std::size_t>(kBlock * columns()));
    tensor_->ReadRows(first, first + kBlock, band.data());
    for (std::int64_t column = 0; column < columns(); column += kBlock) {
      float largest = 0;
      ForBlock(column, [&](std::int64_t i, std::int64_t) {
        largest = std::max(largest, std::fabs(band[static_cast<std::size_t>(i)]));
      });
      const float scale = ScaleFor(largest);
      quantized_.scales[BlockIndex(first, column)] = scale;
      ForBlock(column, [&](std::int64_t i, std::int64_t) {
        quantized_.values[Index(first, 0) + static_cast<std::size_t>(i)] =
            static_cast<std::byte>(FloatToFp8(band[static_cast<std::size_t>(i)] / scale));
      });
    }
  }

  float ScaleFor(float largest) const {
    const float scale = std::max(largest, 1e-12F) / 448.0F;
    return rounding_ == BlockScale::kExact ? scale : std::exp2(std::ceil(std::log2(scale)));
  }

  template <typename Body>
  void ForBlock(std::int64_t column, const Body& body) const {
    for (std::int64_t row = 0; row < kBlock; ++row) {
      for (std::int64_t c = column; c < column + kBlock; ++c) body(row * columns() + c, c);
    }
  }

  std::shared_ptr<const WeightTensor> tensor_;
  BlockScale rounding_;
  mutable std::once_flag once_;
  mutable Quantized quantized_;
};

class Fp8BlockWeights final : public WeightSource {
 public:
  Fp8BlockWeights(std::shared_ptr<const WeightSource> source, BlockScale rounding)
      : source_(std::move(source)), rounding_(rounding) {}

  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    auto tensor = source_->Find(hf_name);
    if (tensor == nullptr || !IsLinear(*tensor)) return tensor;
    return std::make_shared<Fp8BlockTensor>(std::move(tensor), rounding_);
  }

  base::Hash128 hash() const override {
    return base::Combine(
        source_->hash(),
        base::HashBytes(rounding_ == BlockScale::kExact ? "fp8 blocks" : "fp8 blocks, ue8m0"));
  }

 private:
  std::shared_ptr<const WeightSource> source_;
  BlockScale rounding_;
};

}  // namespace

std::uint8_t FloatToFp8(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>(bits >> 31 << 7);
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7F);
  const float magnitude = std::fabs(value);
  if (magnitude >= 448.0F) return static_cast<std::uint8_t>(sign | 0x7E);
  // Normal numbers have 3 fraction bits from exponent -6 on; below, steps of 2^-9.
  const int exponent = magnitude < 0x1p-6F ? -6 : std::ilogb(magnitude);
  const float steps = std::nearbyint(std::ldexp(magnitude, 3 - exponent));
  const int code = (exponent + 6) * 8 + static_cast<int>(steps);
  return static_cast<std::uint8_t>(sign | std::min(code, 0x7E));
}

std::shared_ptr<const WeightSource> QuantizeToFp8Blocks(std::shared_ptr<const WeightSource> source,
                                                        BlockScale rounding) {
  return std::make_shared<Fp8BlockWeights>(std::move(source), rounding);
}

}  // namespace quail::infer
