#pragma once

#include "spec/device_spec.h"
#include "spec/model_spec.h"
#include "spec/workload.h"

namespace quail::spec {

/// Weights of the attention projections (q, k, v, o) and of the MLPs (gate, up, down), all layers.
double AttentionParameters(const ModelSpec& model);
double MlpParameters(const ModelSpec& model);
double BytesPerWeight(WeightType type);
/// Bytes of a position's keys and values over all layers, at two bytes a number.
double KvBytes(const ModelSpec& model);
/// The largest chunk that keeps every index of its widest activation (gate and up) below 2^31.
double MaxChunkTokens(const ModelSpec& model);

/// Seconds of each module.
struct RooflineParts {
  double projections = 0;
  double mlp = 0;
  double attention = 0;
  double total() const { return projections + mlp + attention; }
};

/// The speed of light: for each module the larger of bytes / bandwidth and FLOPs / peak, added up
/// (the published component roofline: embedding, head, norms and launches are not priced). A lower
/// bound.
RooflineParts Roofline(const Workload& work, const ModelSpec& model, const DeviceSpec& device);
double RooflineSeconds(const Workload& work, const ModelSpec& model, const DeviceSpec& device);

/// The same terms at measured rates, plus `asks` times the cost of an ask. Without measured rates
/// the roofline.
double PredictedSeconds(const Workload& work, double asks, const ModelSpec& model,
                        const DeviceSpec& device);

}  // namespace quail::spec
