#include "infer/cpu/cpu_weights.h"

#include <algorithm>
#include <utility>

namespace quail::infer::cpu {

WeightId CpuWeights::AddLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  const WeightId id = Add({});
  std::vector<std::shared_ptr<const WeightTensor>> kept(parts.begin(), parts.end());
  pending_.emplace_back([this, id, tensors = std::move(kept)] {
    weights_[id.value()].linear = engine_.Pack(tensors);
  });
  return id;
}

void CpuWeights::PackPending() {
  pool_.ForEach(pending_.size(), [this](std::size_t i) { pending_[i](); });
  pending_.clear();
}

WeightId CpuWeights::AddEmbedding(const WeightTensor& table) {
  constexpr std::int64_t kRows = 512;
  StoredWeight stored;
  const std::int64_t columns = table.columns();
  stored.rows = table.rows();
  stored.table.resize(static_cast<std::size_t>(table.rows() * columns) * elements_.bytes());
  const std::int64_t blocks = (table.rows() + kRows - 1) / kRows;
  pool_.ForEach(static_cast<std::size_t>(blocks), [&](std::size_t i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * kRows;
    const std::int64_t end = std::min(begin + kRows, table.rows());
    std::byte* out =
        stored.table.data() + static_cast<std::size_t>(begin * columns) * elements_.bytes();
    if (elements_.type() == ElementType::kF32) {
      table.ReadRows(begin, end, reinterpret_cast<float*>(out));
      return;
    }
    std::vector<float> values(static_cast<std::size_t>((end - begin) * columns));
    table.ReadRows(begin, end, values.data());
    elements_.Store(values.data(), (end - begin) * columns, out);
  });
  return Add(std::move(stored));
}

WeightId CpuWeights::AddRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) {
  StoredWeight stored;
  stored.rows = static_cast<std::int64_t>(rows.size());
  stored.values.resize(rows.size() * static_cast<std::size_t>(matrix.columns()));
  float* out = stored.values.data();
  for (const std::int32_t row : rows) {
    matrix.ReadRows(row, row + 1, out);
    out += matrix.columns();
  }
  return Add(std::move(stored));
}

WeightId CpuWeights::AddVector(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  StoredWeight stored;
  for (const auto& part : parts) {
    const std::size_t begin = stored.values.size();
    stored.values.resize(begin + static_cast<std::size_t>(part->rows() * part->columns()));
    part->ReadRows(0, part->rows(), stored.values.data() + begin);
  }
  return Add(std::move(stored));
}

}  // namespace quail::infer::cpu
