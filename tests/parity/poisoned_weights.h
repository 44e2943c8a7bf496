#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "infer/weights/weight_source.h"

namespace quail::parity {

/// Passes tensors through, but one value of the embedding is NaN.
class PoisonedWeights final : public infer::WeightSource {
 public:
  PoisonedWeights(std::shared_ptr<const infer::WeightSource> weights, std::int64_t token)
      : weights_(std::move(weights)), token_(token) {}
  std::shared_ptr<const infer::WeightTensor> Find(std::string_view name) const override {
    auto tensor = weights_->Find(name);
    if (name != "model.embed_tokens.weight") return tensor;
    return std::make_shared<Poisoned>(std::move(tensor), token_);
  }
  base::Hash128 hash() const override { return {}; }

 private:
  class Poisoned final : public infer::WeightTensor {
   public:
    Poisoned(std::shared_ptr<const infer::WeightTensor> tensor, std::int64_t token)
        : tensor_(std::move(tensor)), token_(token) {}
    const std::string& name() const override { return tensor_->name(); }
    std::int64_t rows() const override { return tensor_->rows(); }
    std::int64_t columns() const override { return tensor_->columns(); }
    void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
      tensor_->ReadRows(begin, end, out);
      if (begin <= token_ && token_ < end) {
        out[(token_ - begin) * columns() + 2] = std::numeric_limits<float>::quiet_NaN();
      }
    }

   private:
    std::shared_ptr<const infer::WeightTensor> tensor_;
    std::int64_t token_;
  };
  std::shared_ptr<const infer::WeightSource> weights_;
  std::int64_t token_;
};

}  // namespace quail::parity
