#include "infer/weights/random_weights.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace quail::infer {
namespace {

struct TensorShape {
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  float offset = 0;
  float scale = 0;
};

std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  return hash;
}

float Uniform(std::uint64_t key, std::uint64_t index) {
  std::uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-23F - 1.0F;
}

TensorShape Matrix(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, 0.0F, static_cast<float>(std::sqrt(3.0 / static_cast<double>(columns)))};
}
TensorShape Norm(std::int64_t columns) { return {1, columns, 1.0F, 0.25F}; }
TensorShape Bias(std::int64_t columns) { return {1, columns, 0.0F, 0.25F}; }

std::optional<TensorShape> ModelTensor(const spec::ModelSpec& spec, std::string_view name) {
  if (name == "model.embed_tokens.weight") {
    return TensorShape{spec.vocabulary, spec.hidden, 0.0F, std::sqrt(3.0F)};
  }
  if (name == "model.norm.weight") return Norm(spec.hidden);
  if (name == "lm_head.weight" && !spec.tied_head) return Matrix(spec.vocabulary, spec.hidden);
  return std::nullopt;
}

std::optional<TensorShape> LayerTensor(const spec::ModelSpec& spec, std::string_view name) {
  if (name == "input_layernorm.weight" || name == "post_attention_layernorm.weight") {
    return Norm(spec.hidden);
  }
  if (name == "self_attn.q_proj.weight") return Matrix(spec.q_width(), spec.hidden);
  if (name == "self_attn.k_proj.weight") return Matrix(spec.kv_width(), spec.hidden);
  if (name == "self_attn.v_proj.weight") return Matrix(spec.kv_width(), spec.hidden);
  if (name == "self_attn.o_proj.weight") return Matrix(spec.hidden, spec.q_width());
  if (name == "mlp.gate_proj.weight") return Matrix(spec.ffn, spec.hidden);
  if (name == "mlp.up_proj.weight") return Matrix(spec.ffn, spec.hidden);
  if (name == "mlp.down_proj.weight") return Matrix(spec.hidden, spec.ffn);
  if (spec.qk_norm && (name == "self_attn.q_norm.weight" || name == "self_attn.k_norm.weight")) {
    return Norm(spec.head_dim);
  }
  if (spec.qkv_bias && name == "self_attn.q_proj.bias") return Bias(spec.q_width());
  if (spec.qkv_bias && name == "self_attn.k_proj.bias") return Bias(spec.kv_width());
  if (spec.qkv_bias && name == "self_attn.v_proj.bias") return Bias(spec.kv_width());
  return std::nullopt;
}

std::optional<TensorShape> ShapeOf(const spec::ModelSpec& spec, std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return ModelTensor(spec, name);
  const std::string_view rest = name.substr(kPrefix.size());
  const std::size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  for (std::int32_t layer = 0; layer < spec.layers; ++layer) {
    if (rest.substr(0, dot) == std::to_string(layer))
      return LayerTensor(spec, rest.substr(dot + 1));
  }
  return std::nullopt;
}

class RandomTensor final : public WeightTensor {
 public:
  RandomTensor(std::string_view name, const TensorShape& shape, std::uint64_t seed)
      : name_(name), shape_(shape), key_(Fnv1a(name) ^ seed) {}

  const std::string& name() const override { return name_; }
  std::int64_t rows() const override { return shape_.rows; }
  std::int64_t columns() const override { return shape_.columns; }

  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    const std::int64_t first = begin * shape_.columns;
    const std::int64_t count = (end - begin) * shape_.columns;
    for (std::int64_t i = 0; i < count; ++i) {
      const float product = shape_.scale * Uniform(key_, static_cast<std::uint64_t>(first + i));
      out[i] = shape_.offset + product;
    }
  }

 private:
  std::string name_;
  TensorShape shape_;
  std::uint64_t key_;
};

class RandomWeights final : public WeightSource {
 public:
  RandomWeights(const spec::ModelSpec& spec, std::uint64_t seed) : spec_(spec), seed_(seed) {}

  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    const std::optional<TensorShape> shape = ShapeOf(spec_, hf_name);
    if (!shape) return nullptr;
    return std::make_shared<RandomTensor>(hf_name, *shape, seed_);
  }

  base::Hash128 hash() const override {
    const spec::ModelSpec& s = spec_;
    return base::HashBytes(fmt::format("random {} {} {} {} {} {} {} {} {} {} {} {} {}", seed_,
                                       spec::TraitsOf(s.family).name, s.layers, s.hidden, s.heads,
                                       s.kv_heads, s.head_dim, s.ffn, s.vocabulary, s.qk_norm,
                                       s.qkv_bias, s.tied_head, s.context));
  }

 private:
  spec::ModelSpec spec_;
  std::uint64_t seed_;
};

}  // namespace

std::shared_ptr<const WeightSource> CreateRandomWeights(const spec::ModelSpec& spec,
                                                        std::uint64_t seed) {
  return std::make_shared<RandomWeights>(spec, seed);
}

}  // namespace quail::infer
