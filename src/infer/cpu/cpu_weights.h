#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "infer/backend.h"
#include "infer/cpu/cpu_elements.h"
#include "infer/cpu/cpu_linear.h"

namespace quail::infer::cpu {

/// A weight in one of its forms; the others are empty. E is the element type of products.
struct StoredWeight {
  LinearWeight linear;
  std::vector<std::byte> table;  ///< E [rows, columns]
  std::vector<float> values;     ///< vectors; the answer head [rows, columns]
  std::int64_t rows = 0;
};

/// The weights of a model as the CPU backend computes with them (Backend::Load..). One thread.
class CpuWeights {
 public:
  /// All outlive it.
  CpuWeights(LinearEngine& engine, base::ThreadPool& pool, const Elements& elements)
      : engine_(engine), pool_(pool), elements_(elements) {}
  CpuWeights(const CpuWeights&) = delete;
  CpuWeights& operator=(const CpuWeights&) = delete;

  WeightId AddLinear(std::span<const std::shared_ptr<const WeightTensor>> parts);
  WeightId AddEmbedding(const WeightTensor& table);
  WeightId AddRows(const WeightTensor& matrix, std::span<const std::int32_t> rows);
  WeightId AddVector(std::span<const std::shared_ptr<const WeightTensor>> parts);
  /// Matrices are packed together, one thread a matrix: done before the first product.
  void PackPending();

  bool empty() const { return weights_.empty(); }
  const StoredWeight& operator[](WeightId id) const { return weights_[id.value()]; }
  const float* vector(WeightId id) const { return weights_[id.value()].values.data(); }

 private:
  WeightId Add(StoredWeight weight) {
    weights_.push_back(std::move(weight));
    return WeightId(static_cast<std::uint32_t>(weights_.size() - 1));
  }

  LinearEngine& engine_;
  base::ThreadPool& pool_;
  const Elements& elements_;
  std::vector<StoredWeight> weights_;
  std::vector<std::function<void()>> pending_;
};

}  // namespace quail::infer::cpu
