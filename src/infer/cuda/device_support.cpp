#include "infer/cuda/device_support.h"

#include <fmt/format.h>

#include <algorithm>

#include "quail/error.h"

namespace quail::infer::cuda {
namespace {

constexpr std::int32_t kNeededMajor = 9;
constexpr std::int64_t kBf16 = 2;
constexpr std::int64_t kScaleBytes = 4;

std::string VersionName(std::int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

bool IsFp8(const spec::ModelSpec& spec) { return spec.weight_type == spec::WeightType::kFp8Block; }

/// Linear layers as they are kept, embedding and an untied head in bf16.
std::int64_t WeightBytes(const spec::ModelSpec& spec) {
  const std::int64_t tables = spec.tied_head ? 1 : 2;
  const std::int64_t linear = spec.block_parameters();
  const std::int64_t blocks =
      IsFp8(spec) ? linear + linear / (128 * 128) * kScaleBytes : linear * kBf16;
  return blocks + tables * std::int64_t{spec.vocabulary} * spec.hidden * kBf16;
}

double Gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

}  // namespace

std::optional<std::string> WhyUnusable(const DeviceFacts& facts) {
  if (facts.driver_version == 0) return "no NVIDIA driver is installed";
  if (facts.driver_version < facts.runtime_version) {
    return fmt::format("the NVIDIA driver supports CUDA {}; this program needs {}",
                       VersionName(facts.driver_version), VersionName(facts.runtime_version));
  }
  if (facts.device >= facts.devices) {
    return fmt::format("no GPU {}: this computer has {}", facts.device, facts.devices);
  }
  if (facts.major != kNeededMajor) {
    return fmt::format(
        "{} has compute capability {}.{}; the CUDA backend is built for 9.0 (Hopper)", facts.name,
        facts.major, facts.minor);
  }
  return std::nullopt;
}

std::int64_t ActivationBytes::total() const {
  return residual + kept_residual + normed + kept_normed + kept_fp8 + heads + kept_queries +
         attention + delta + gate_up + inner + scales + kept_scales;
}

ActivationBytes ActivationBytesPerRow(const spec::ModelSpec& spec) {
  const bool fp8 = IsFp8(spec);
  const std::int64_t element = fp8 ? 1 : kBf16;
  const std::int64_t hidden = spec.hidden, q = spec.q_width(), ffn = spec.ffn;
  ActivationBytes bytes;
  bytes.residual = bytes.kept_residual = bytes.kept_normed = bytes.delta = hidden * kBf16;
  bytes.normed = hidden * element;
  bytes.heads = (q + std::int64_t{2} * spec.kv_width()) * kBf16;
  bytes.kept_queries = q * kBf16;
  bytes.attention = q * element;
  bytes.gate_up = 2 * ffn * kBf16;
  bytes.inner = ffn * element;
  if (!fp8) return bytes;
  const auto scales = [](std::int64_t columns) { return columns / 128 * kScaleBytes; };
  bytes.kept_fp8 = hidden;
  bytes.scales = scales(std::max({hidden, q, ffn}));
  bytes.kept_scales = scales(hidden);
  return bytes;
}

void CheckFits(const spec::ModelSpec& spec, std::int64_t chunk_tokens, std::int64_t free_bytes,
               const std::string& device) {
  const std::int64_t weights = WeightBytes(spec);
  const std::int64_t activations = ActivationBytesPerRow(spec).total() * chunk_tokens;
  if (weights + activations <= free_bytes) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{} needs {:.2f} GiB of device memory beside its keys and values ({:.2f} "
                          "for weights, {:.2f} for the activations of {} tokens); {} has {:.2f} "
                          "GiB free",
                          spec.name, Gib(weights + activations), Gib(weights), Gib(activations),
                          chunk_tokens, device, Gib(free_bytes)));
}

}  // namespace quail::infer::cuda
