#include "infer/cuda/device_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

constexpr std::int64_t kRowsAtOnce = 1024;

/// Round to nearest, ties to even; NaN stays NaN.
std::uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

void Copy(std::byte* to, const void* from, std::size_t bytes) {
  CheckCuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "weight copy");
}

void UploadBf16Rows(const WeightTensor& tensor, std::int64_t begin, std::int64_t end,
                    std::byte* to) {
  const auto row_bytes = static_cast<std::size_t>(tensor.columns()) * 2;
  if (const auto stored = tensor.bf16_data()) {
    Copy(to, stored->data() + static_cast<std::size_t>(begin) * row_bytes,
         static_cast<std::size_t>(end - begin) * row_bytes);
    return;
  }
  std::vector<float> values;
  std::vector<std::uint16_t> rounded;
  for (std::int64_t row = begin; row < end; row += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, end - row);
    values.resize(static_cast<std::size_t>(count * tensor.columns()));
    tensor.ReadRows(row, row + count, values.data());
    rounded.resize(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), ToBf16);
    Copy(to + static_cast<std::size_t>(row - begin) * row_bytes, rounded.data(),
         rounded.size() * 2);
  }
}

std::vector<float> ScalesAsF32(const Fp8BlockData& data) {
  if (!data.scales_are_bf16) {
    std::vector<float> scales(data.scales.size() / 4);
    std::memcpy(scales.data(), data.scales.data(), scales.size() * 4);
    return scales;
  }
  std::vector<float> scales(data.scales.size() / 2);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, data.scales.data() + 2 * i, 2);
    scales[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  return scales;
}

void UploadFp8Part(const WeightTensor& part, DeviceWeight& weight, std::int64_t first_row) {
  const auto data = part.fp8_block_data();
  QUAIL_CHECK(data.has_value());
  if (part.rows() % 128 != 0) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{} has {} rows; block-scaled fp8 needs a multiple of 128", part.name(),
                            part.rows()));
  }
  Copy(weight.values.data() + first_row * weight.columns, data->values.data(), data->values.size());
  const std::vector<float> scales = ScalesAsF32(*data);
  QUAIL_CHECK_EQ(static_cast<std::int64_t>(scales.size()),
                 part.rows() / 128 * (weight.columns / 128));
  Copy(weight.scales.data() + first_row / 128 * (weight.columns / 128) * 4, scales.data(),
       scales.size() * 4);
}

}  // namespace

DeviceWeight UploadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts,
                          bool allow_fp8) {
  const bool fp8 = allow_fp8 && std::all_of(parts.begin(), parts.end(), [](const auto& part) {
                     return part->fp8_block_data().has_value();
                   });
  DeviceWeight weight;
  weight.is_fp8 = fp8;
  weight.columns = parts.front()->columns();
  for (const auto& part : parts) weight.rows += part->rows();
  // Vectors come as one row each and are stacked end to end.
  const auto elements = static_cast<std::size_t>([&] {
    std::int64_t total = 0;
    for (const auto& part : parts) total += part->rows() * part->columns();
    return total;
  }());
  weight.values = DeviceBuffer(elements * (fp8 ? 1 : 2), "weights");
  if (fp8) weight.scales = DeviceBuffer(elements / (128 * 128) * 4, "weight scales");
  std::int64_t row = 0;
  std::size_t offset = 0;
  for (const auto& part : parts) {
    if (fp8) {
      UploadFp8Part(*part, weight, row);
    } else {
      UploadBf16Rows(*part, 0, part->rows(), weight.values.data() + offset);
    }
    row += part->rows();
    offset += static_cast<std::size_t>(part->rows() * part->columns()) * 2;
  }
  return weight;
}

DeviceWeight UploadRows(const WeightTensor& matrix, std::int64_t begin, std::int64_t end) {
  DeviceWeight weight;
  weight.rows = end - begin;
  weight.columns = matrix.columns();
  weight.values =
      DeviceBuffer(static_cast<std::size_t>(weight.rows * weight.columns) * 2, "weights");
  UploadBf16Rows(matrix, begin, end, weight.values.data());
  return weight;
}

DeviceWeight UploadPickedRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) {
  DeviceWeight weight;
  weight.rows = static_cast<std::int64_t>(rows.size());
  weight.columns = matrix.columns();
  const auto row_bytes = static_cast<std::size_t>(weight.columns) * 2;
  weight.values = DeviceBuffer(rows.size() * row_bytes, "answer head");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    UploadBf16Rows(matrix, rows[i], rows[i] + 1, weight.values.data() + i * row_bytes);
  }
  return weight;
}

}  // namespace quail::infer::cuda
