#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash128.h"

namespace quail::infer {

/// Weights stored as fp8 e4m3 with one fp32 scale a 128 x 128 block: value = fp8 * scale.
struct Fp8BlockData {
  std::span<const std::byte> values;  ///< e4m3 [rows, columns], row-major
  std::span<const std::byte>
      scales;  ///< fp32 or bf16 [ceil(rows / 128), ceil(columns / 128)], row-major
  bool scales_are_bf16 = false;
};

/// One tensor of a model file, matrix [rows, columns] (a vector has one row), already in the row
/// order that models use (rotary halves apart, as in HF checkpoints), adapters merged. Views on
/// mapped files; thread-safe.
class WeightTensor {
 public:
  virtual ~WeightTensor() = default;
  virtual const std::string& name() const = 0;
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t columns() const = 0;
  /// Dequantises rows [begin, end) into `out`, f32 [end - begin, columns].
  virtual void ReadRows(std::int64_t begin, std::int64_t end, float* out) const = 0;
  /// The stored bytes where the tensor is bf16 [rows, columns] in model row order and unchanged by
  /// an adapter.
  virtual std::optional<std::span<const std::byte>> bf16_data() const { return std::nullopt; }
  virtual std::optional<Fp8BlockData> fp8_block_data() const { return std::nullopt; }
};

/// A model file's tensors by their HF names ("model.layers.0.self_attn.q_proj.weight"), whatever
/// the file format.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// nullptr when there is none.
  virtual std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const = 0;
  /// Content hash of file(s) and adapter.
  virtual base::Hash128 hash() const = 0;
};

/// As Find, but a missing tensor or another shape is Error{kModel} with both shapes.
std::shared_ptr<const WeightTensor> FindWeight(const WeightSource& source, std::string_view hf_name,
                                               std::int64_t rows, std::int64_t columns);

}  // namespace quail::infer
