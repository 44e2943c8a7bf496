#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "infer/weights/weight_source.h"

namespace quail::parity {

/// Passes tensors through, those of linear layers rounded row by row to whole multiples of the
/// row's largest value / `limit`.
class Int8Weights final : public infer::WeightSource {
 public:
  Int8Weights(std::shared_ptr<const infer::WeightSource> weights, std::int32_t limit)
      : weights_(std::move(weights)), limit_(limit) {}
  std::shared_ptr<const infer::WeightTensor> Find(std::string_view name) const override {
    auto tensor = weights_->Find(name);
    if (tensor == nullptr || !name.ends_with("_proj.weight")) return tensor;
    return std::make_shared<Rounded>(std::move(tensor), limit_);
  }
  base::Hash128 hash() const override { return {}; }

 private:
  class Rounded final : public infer::WeightTensor {
   public:
    Rounded(std::shared_ptr<const infer::WeightTensor> tensor, std::int32_t limit)
        : tensor_(std::move(tensor)), limit_(limit) {}
    const std::string& name() const override { return tensor_->name(); }
    std::int64_t rows() const override { return tensor_->rows(); }
    std::int64_t columns() const override { return tensor_->columns(); }
    void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
      tensor_->ReadRows(begin, end, out);
      for (std::int64_t row = begin; row < end; ++row, out += columns()) {
        float largest = 0;
        for (std::int64_t i = 0; i < columns(); ++i) largest = std::max(largest, std::abs(out[i]));
        const float step = largest / static_cast<float>(limit_);
        for (std::int64_t i = 0; i < columns() && step > 0; ++i) {
          out[i] = std::nearbyint(out[i] / step) * step;
        }
      }
    }

   private:
    std::shared_ptr<const infer::WeightTensor> tensor_;
    std::int32_t limit_;
  };
  std::shared_ptr<const infer::WeightSource> weights_;
  std::int32_t limit_;
};

}  // namespace quail::parity
