#include "spec/roofline.h"

#include <algorithm>
#include <cmath>

namespace quail::spec {

namespace {

double Seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

}  // namespace

double AttentionParameters(const ModelSpec& model) {
  return static_cast<double>(model.layers) * model.hidden *
         (2.0 * model.q_width() + 2.0 * model.kv_width());
}

double MlpParameters(const ModelSpec& model) {
  return 3.0 * model.layers * static_cast<double>(model.hidden) * model.ffn;
}

double BytesPerWeight(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return 4;
    case WeightType::kF16:
    case WeightType::kBf16:
      return 2;
    case WeightType::kFp8Block:
    case WeightType::kFp8Row:
    case WeightType::kInt8:
      return 1;
  }
  return 2;
}

double KvBytes(const ModelSpec& model) { return 4.0 * model.layers * model.kv_width(); }

double MaxChunkTokens(const ModelSpec& model) {
  if (model.ffn <= 0) return 1;
  return std::floor(2147483647.0 / (2.0 * model.ffn));
}

RooflineParts Roofline(const Workload& work, const ModelSpec& model, const DeviceSpec& device) {
  const double rate = device.GemmRate(model.weight_type);
  const auto linear = [&](double parameters) {
    return std::max(
        Seconds(2 * parameters * work.tokens, rate),
        Seconds(parameters * BytesPerWeight(model.weight_type) * work.passes, device.bandwidth));
  };
  RooflineParts parts;
  parts.projections = linear(AttentionParameters(model));
  parts.mlp = linear(MlpParameters(model));
  parts.attention =
      std::max(Seconds(4.0 * model.q_width() * model.layers * work.attention_pairs,
                       device.AttentionRate(model.weight_type)),
               Seconds(KvBytes(model) * (work.kv_written + work.kv_read), device.bandwidth));
  return parts;
}

double RooflineSeconds(const Workload& work, const ModelSpec& model, const DeviceSpec& device) {
  return Roofline(work, model, device).total();
}

double PredictedSeconds(const Workload& work, double asks, const ModelSpec& model,
                        const DeviceSpec& device) {
  const RooflineParts parts = Roofline(work, model, device);
  if (!device.measured) return parts.total();
  const MeasuredRates& rates = *device.measured;
  return (parts.projections + parts.mlp) / rates.gemm_fraction +
         parts.attention / rates.attention_fraction + asks * rates.ask_seconds;
}

}  // namespace quail::spec
