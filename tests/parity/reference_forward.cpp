#include "reference_forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "infer/weights/block_formats.h"
#include "infer/weights/fp8_block_weights.h"

namespace quail::parity {
namespace {

std::vector<std::vector<double>> ReadMatrix(const infer::WeightSource& source,
                                            const std::string& name) {
  const auto tensor = source.Find(name);
  if (tensor == nullptr) return {};
  std::vector<float> row(static_cast<std::size_t>(tensor->columns()));
  std::vector<std::vector<double>> matrix;
  for (std::int64_t i = 0; i < tensor->rows(); ++i) {
    tensor->ReadRows(i, i + 1, row.data());
    matrix.emplace_back(row.begin(), row.end());
  }
  return matrix;
}

std::vector<double> ReadVector(const infer::WeightSource& source, const std::string& name) {
  const auto matrix = ReadMatrix(source, name);
  return matrix.empty() ? std::vector<double>() : matrix.front();
}

void AddTo(std::vector<double>& sum, const std::vector<double>& x) {
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += x[i];
}

/// In eight sums, which the compiler keeps in vectors.
double Dot(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  const std::size_t whole = a.size() / kSums * kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  double sum = 0;
  for (std::size_t i = whole; i < a.size(); ++i) sum += a[i] * b[i];
  for (const double part : sums) sum += part;
  return sum;
}

/// In 255 equal steps over the range of x and 0, one of which is at 0.
std::vector<double> InSteps(std::vector<double> x) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  const double low = std::min(*least, 0.0);
  const double step = (std::max(*most, 0.0) - low) / 255;
  if (step == 0) return x;
  const double zero = std::nearbyint(-low / step);
  for (double& value : x) {
    value = step * (std::clamp(std::nearbyint(value / step + zero), 0.0, 255.0) - zero);
  }
  return x;
}

}  // namespace

ReferenceModel::ReferenceModel(const spec::ModelSpec& spec, const infer::WeightSource& weights,
                               Activations activations)
    : spec_(spec),
      activations_(activations),
      embedding_(ReadMatrix(weights, "model.embed_tokens.weight")),
      head_(spec.tied_head ? embedding_ : ReadMatrix(weights, "lm_head.weight")),
      final_norm_(ReadVector(weights, "model.norm.weight")) {
  for (std::int32_t i = 0; i < spec.layers; ++i) {
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    Layer layer;
    layer.input_norm = ReadVector(weights, prefix + "input_layernorm.weight");
    layer.post_norm = ReadVector(weights, prefix + "post_attention_layernorm.weight");
    layer.q_norm = ReadVector(weights, prefix + "self_attn.q_norm.weight");
    layer.k_norm = ReadVector(weights, prefix + "self_attn.k_norm.weight");
    layer.q_bias = ReadVector(weights, prefix + "self_attn.q_proj.bias");
    layer.k_bias = ReadVector(weights, prefix + "self_attn.k_proj.bias");
    layer.v_bias = ReadVector(weights, prefix + "self_attn.v_proj.bias");
    layer.q = ReadMatrix(weights, prefix + "self_attn.q_proj.weight");
    layer.k = ReadMatrix(weights, prefix + "self_attn.k_proj.weight");
    layer.v = ReadMatrix(weights, prefix + "self_attn.v_proj.weight");
    layer.o = ReadMatrix(weights, prefix + "self_attn.o_proj.weight");
    layer.gate = ReadMatrix(weights, prefix + "mlp.gate_proj.weight");
    layer.up = ReadMatrix(weights, prefix + "mlp.up_proj.weight");
    layer.down = ReadMatrix(weights, prefix + "mlp.down_proj.weight");
    layers_.push_back(std::move(layer));
  }
}

ReferenceModel::Vector ReferenceModel::Rounded(Vector x, bool of_attention) const {
  if (activations_ == Activations::kExact) return x;
  if (activations_ == Activations::kInt8) return InSteps(std::move(x));
  constexpr std::size_t kBlock = 128;
  const bool power_of_two = activations_ == Activations::kFp8PowerOfTwo ||
                            (of_attention && activations_ == Activations::kFp8AttentionPowerOfTwo);
  for (std::size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::span<double> block = std::span(x).subspan(begin, kBlock);
    double largest = 1e-10;
    for (const double value : block) largest = std::max(largest, std::abs(value));
    double scale = largest / 448;
    if (power_of_two) scale = std::exp2(std::ceil(std::log2(scale)));
    for (double& value : block) {
      const std::uint8_t code = infer::FloatToFp8(static_cast<float>(value / scale));
      value = scale * static_cast<double>(infer::Fp8ToFloat(code));
    }
  }
  return x;
}

ReferenceModel::Vector ReferenceModel::Project(const Matrix& weight, const Vector& x) const {
  Vector y;
  for (const Vector& row : weight) y.push_back(Dot(row, x));
  return y;
}

ReferenceModel::Vector ReferenceModel::Normalise(const Vector& x, const Vector& weight) const {
  const double mean = Dot(x, x) / static_cast<double>(x.size());
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / std::sqrt(mean + spec_.norm_epsilon) * weight[i];
  }
  return y;
}

void ReferenceModel::NormaliseHeads(Vector& x, const Vector& weight) const {
  if (weight.empty()) return;
  for (std::size_t begin = 0; begin < x.size(); begin += weight.size()) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(begin);
    const Vector head = Normalise({first, first + spec_.head_dim}, weight);
    std::copy(head.begin(), head.end(), first);
  }
}

double ReferenceModel::Frequency(std::int32_t i) const {
  const double plain = std::pow(spec_.rope_theta, -2.0 * i / spec_.head_dim);
  const spec::RopeScaling& s = spec_.rope_scaling;
  if (s.factor == 1.0) return plain;
  const double wavelength = 2 * std::numbers::pi / plain;
  if (wavelength < s.original_context / s.high_frequency_factor) return plain;
  if (wavelength > s.original_context / s.low_frequency_factor) return plain / s.factor;
  const double smooth = (s.original_context / wavelength - s.low_frequency_factor) /
                        (s.high_frequency_factor - s.low_frequency_factor);
  return (1 - smooth) * plain / s.factor + smooth * plain;
}

void ReferenceModel::Rotate(Vector& x, std::int32_t position) const {
  const auto half = static_cast<std::size_t>(spec_.head_dim / 2);
  for (std::size_t begin = 0; begin < x.size(); begin += 2 * half) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position * Frequency(static_cast<std::int32_t>(i));
      const double a = x[begin + i];
      const double b = x[begin + half + i];
      x[begin + i] = a * std::cos(angle) - b * std::sin(angle);
      x[begin + half + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
}

ReferenceModel::Vector ReferenceModel::Attend(const Vector& query, const Matrix& keys,
                                              const Matrix& values) const {
  const auto dim = static_cast<std::size_t>(spec_.head_dim);
  const auto group = static_cast<std::size_t>(spec_.heads / spec_.kv_heads);
  Vector out(query.size(), 0.0);
  for (std::size_t head = 0; head < static_cast<std::size_t>(spec_.heads); ++head) {
    const std::span<const double> q = std::span(query).subspan(head * dim, dim);
    const std::size_t offset = head / group * dim;
    Vector scores;
    double max = -1e300;
    for (const Vector& key : keys) {
      scores.push_back(Dot(q, std::span(key).subspan(offset, dim)) /
                       std::sqrt(static_cast<double>(dim)));
      max = std::max(max, scores.back());
    }
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - max);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      for (std::size_t i = 0; i < dim; ++i) {
        out[head * dim + i] += scores[j] / sum * values[j][offset + i];
      }
    }
  }
  return out;
}

ReferenceModel::Path ReferenceModel::Run(std::span<const std::int32_t> tokens,
                                         std::int32_t first_position, std::size_t answers) const {
  Path path;
  Matrix hidden;
  for (const std::int32_t token : tokens) {
    hidden.push_back(embedding_[static_cast<std::size_t>(token)]);
  }
  for (const Layer& layer : layers_) {
    Matrix keys;
    Matrix values;
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const std::int32_t position = first_position + static_cast<std::int32_t>(t);
      const Vector x = Rounded(Normalise(hidden[t], layer.input_norm));
      Vector q = Project(layer.q, x);
      Vector k = Project(layer.k, x);
      Vector v = Project(layer.v, x);
      AddTo(q, layer.q_bias);
      AddTo(k, layer.k_bias);
      AddTo(v, layer.v_bias);
      NormaliseHeads(q, layer.q_norm);
      NormaliseHeads(k, layer.k_norm);
      Rotate(q, position);
      Rotate(k, position);
      keys.push_back(k);
      values.push_back(v);
      if (&layer == &layers_.back() && hidden.size() - t > answers) continue;
      AddTo(hidden[t], Project(layer.o, Rounded(Attend(q, keys, values), true)));
      const Vector y = Rounded(Normalise(hidden[t], layer.post_norm));
      Vector gate = Project(layer.gate, y);
      const Vector up = Project(layer.up, y);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      AddTo(hidden[t], Project(layer.down, Rounded(gate)));
    }
    path.keys.push_back(std::move(keys));
    path.values.push_back(std::move(values));
  }
  for (const Vector& row : hidden) path.normed.push_back(Normalise(row, final_norm_));
  return path;
}

double ReferenceModel::Logit(std::span<const double> normed, std::int32_t token) const {
  return Dot(normed, head_[static_cast<std::size_t>(token)]);
}

double ReferenceModel::LogProbability(std::span<const double> normed, std::int32_t token) const {
  double max = -1e300;
  for (const Vector& row : head_) max = std::max(max, Dot(normed, row));
  double sum = 0;
  for (const Vector& row : head_) sum += std::exp(Dot(normed, row) - max);
  return Logit(normed, token) - max - std::log(sum);
}

}  // namespace quail::parity
