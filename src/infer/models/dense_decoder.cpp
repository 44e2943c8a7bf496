#include "infer/models/dense_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quail/error.h"

namespace quail::infer {
namespace {

using TensorPtr = std::shared_ptr<const WeightTensor>;

struct Layer {
  WeightId input_norm;
  QkvWeights qkv;
  WeightId output;
  WeightId post_norm;
  WeightId gate_up;
  WeightId down;
};

struct DecoderWeights {
  WeightId embedding;
  std::vector<Layer> layers;
  WeightId final_norm;
  std::optional<WeightId> answer_head;
  std::optional<WeightId> full_head;
};

class DenseDecoder final : public Model {
 public:
  DenseDecoder(const spec::ModelSpec& spec, DecoderWeights weights)
      : spec_(spec), weights_(std::move(weights)) {}

  const spec::ModelSpec& spec() const override { return spec_; }

  bool Forward(Backend& backend, Chunk& chunk, const PrefillBatch& batch,
               const base::CancelFlag* cancel) const override {
    const std::vector<Layer>& layers = weights_.layers;
    backend.Embed(chunk, weights_.embedding, layers.front().input_norm);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (cancel != nullptr && cancel->cancelled()) return false;
      const bool last = i + 1 == layers.size();
      const Layer& layer = layers[i];
      const auto index = static_cast<std::int32_t>(i);
      backend.Qkv(chunk, layer.qkv, index, last);
      backend.Attention(chunk, index);
      backend.AttentionOutput(chunk, layer.output, layer.post_norm);
      backend.GateUp(chunk, layer.gate_up);
      backend.Down(chunk, layer.down, last ? weights_.final_norm : layers[i + 1].input_norm);
    }
    if (weights_.answer_head && !batch.answer_rows.empty()) {
      backend.AnswerLogits(chunk, *weights_.answer_head);
    }
    if (weights_.full_head && !batch.scored_tokens.empty()) {
      backend.LogProbs(chunk, *weights_.full_head, spec_.vocabulary);
    }
    backend.Finish(chunk);
    return true;
  }

 private:
  spec::ModelSpec spec_;
  DecoderWeights weights_;
};

class Loader {
 public:
  Loader(const ModelRequest& request, const WeightSource& source, Backend& backend)
      : request_(request), spec_(request.spec), source_(source), backend_(backend) {}

  DecoderWeights Load() {
    DecoderWeights weights;
    const TensorPtr embedding =
        FindWeight(source_, "model.embed_tokens.weight", spec_.vocabulary, spec_.hidden);
    weights.embedding = backend_.LoadEmbedding(*embedding);
    for (std::int32_t i = 0; i < spec_.layers; ++i) {
      weights.layers.push_back(LoadLayer(fmt::format("model.layers.{}.", i)));
    }
    weights.final_norm = Norm("model.norm.weight", spec_.hidden);
    const TensorPtr head = Head(embedding);
    if (!request_.answer_tokens.empty()) {
      weights.answer_head = backend_.LoadRows(*head, request_.answer_tokens);
    }
    if (request_.with_full_head) weights.full_head = Linear({head});
    return weights;
  }

 private:
  TensorPtr Find(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    return FindWeight(source_, name, rows, columns);
  }
  WeightId Norm(const std::string& name, std::int64_t columns) {
    const TensorPtr tensor = Find(name, 1, columns);
    return backend_.LoadVector(std::span(&tensor, 1));
  }
  WeightId Linear(const std::vector<TensorPtr>& parts) { return backend_.LoadLinear(parts); }

  QkvWeights LoadQkv(const std::string& prefix) {
    const std::int64_t q = spec_.q_width();
    const std::int64_t kv = spec_.kv_width();
    QkvWeights weights;
    weights.projection = Linear({Find(prefix + "q_proj.weight", q, spec_.hidden),
                                 Find(prefix + "k_proj.weight", kv, spec_.hidden),
                                 Find(prefix + "v_proj.weight", kv, spec_.hidden)});
    if (spec_.qkv_bias) {
      const std::vector<TensorPtr> biases = {Find(prefix + "q_proj.bias", 1, q),
                                             Find(prefix + "k_proj.bias", 1, kv),
                                             Find(prefix + "v_proj.bias", 1, kv)};
      weights.bias = backend_.LoadVector(biases);
    }
    if (spec_.qk_norm) {
      weights.q_norm = Norm(prefix + "q_norm.weight", spec_.head_dim);
      weights.k_norm = Norm(prefix + "k_norm.weight", spec_.head_dim);
    }
    return weights;
  }

  Layer LoadLayer(const std::string& prefix) {
    Layer layer;
    layer.input_norm = Norm(prefix + "input_layernorm.weight", spec_.hidden);
    layer.qkv = LoadQkv(prefix + "self_attn.");
    layer.output =
        Linear({Find(prefix + "self_attn.o_proj.weight", spec_.hidden, spec_.q_width())});
    layer.post_norm = Norm(prefix + "post_attention_layernorm.weight", spec_.hidden);
    layer.gate_up = Linear({Find(prefix + "mlp.gate_proj.weight", spec_.ffn, spec_.hidden),
                            Find(prefix + "mlp.up_proj.weight", spec_.ffn, spec_.hidden)});
    layer.down = Linear({Find(prefix + "mlp.down_proj.weight", spec_.hidden, spec_.ffn)});
    return layer;
  }

  TensorPtr Head(const TensorPtr& embedding) const {
    if (!spec_.tied_head) return Find("lm_head.weight", spec_.vocabulary, spec_.hidden);
    if (source_.Find("lm_head.weight") != nullptr) {
      CheckEqual(*embedding, *Find("lm_head.weight", spec_.vocabulary, spec_.hidden));
    }
    return embedding;
  }

  static void CheckEqual(const WeightTensor& embedding, const WeightTensor& head) {
    constexpr std::int64_t kRows = 256;
    const auto columns = static_cast<std::size_t>(embedding.columns());
    std::vector<float> a(kRows * columns);
    std::vector<float> b(kRows * columns);
    for (std::int64_t begin = 0; begin < embedding.rows(); begin += kRows) {
      const std::int64_t end = std::min(begin + kRows, embedding.rows());
      embedding.ReadRows(begin, end, a.data());
      head.ReadRows(begin, end, b.data());
      if (!std::equal(a.begin(), a.begin() + (end - begin) * embedding.columns(), b.begin())) {
        throw Error(ErrorCode::kModel,
                    fmt::format("the model says that its head is the embedding, but lm_head.weight "
                                "differs from it in rows {} to {}",
                                begin, end - 1));
      }
    }
  }

  const ModelRequest& request_;
  const spec::ModelSpec& spec_;
  const WeightSource& source_;
  Backend& backend_;
};

/// Llama 3.1's scaling of one inverse frequency (transformers, modeling_rope_utils.py).
double ScaleFrequency(double frequency, const spec::RopeScaling& scaling) {
  if (scaling.factor == 1.0) return frequency;
  const double turns = scaling.original_context * frequency / (2.0 * std::numbers::pi);
  const double smooth = (turns - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  const double kept = std::clamp(smooth, 0.0, 1.0);
  return (1.0 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

std::vector<float> RotaryFrequencies(const spec::ModelSpec& spec, const WeightSource& weights) {
  const std::int32_t half = spec.head_dim / 2;
  std::vector<float> divisors(static_cast<std::size_t>(half), 1.0F);
  if (weights.Find("rope_freqs.weight") != nullptr) {
    FindWeight(weights, "rope_freqs.weight", 1, half)->ReadRows(0, 1, divisors.data());
  }
  std::vector<float> frequencies;
  for (std::int32_t i = 0; i < half; ++i) {
    const double frequency = std::pow(spec.rope_theta, -2.0 * i / spec.head_dim);
    frequencies.push_back(static_cast<float>(ScaleFrequency(frequency, spec.rope_scaling) /
                                             divisors[static_cast<std::size_t>(i)]));
  }
  return frequencies;
}

std::unique_ptr<Model> LoadDenseDecoder(const ModelRequest& request, const WeightSource& weights,
                                        Backend& backend) {
  backend.Configure({request.spec, {RotaryFrequencies(request.spec, weights)}});
  return std::make_unique<DenseDecoder>(request.spec, Loader(request, weights, backend).Load());
}

}  // namespace quail::infer
