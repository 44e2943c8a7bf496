#include "spec/known_shapes.h"

#include <algorithm>

namespace quail::spec {
namespace {

/// config.json of Qwen/Qwen3-*; ids of TRUE, " TRUE", True, " True" and of FALSE .. in its
/// tokenizer.json.
KnownShape Qwen3(std::string name) {
  KnownShape shape;
  ModelSpec& spec = shape.spec;
  spec.name = std::move(name);
  spec.family = ModelFamily::kQwen3;
  spec.kv_heads = 8;
  spec.head_dim = 128;
  spec.vocabulary = 151936;
  spec.context = 40960;
  spec.norm_epsilon = 1e-6;
  spec.rope_theta = 1e6;
  spec.qk_norm = true;
  spec.tied_head = true;
  shape.yes_word = "TRUE";
  shape.no_word = "FALSE";
  shape.yes = {20611, 8214, 2514, 3007};
  shape.no = {30351, 7833, 4049, 3557};
  return shape;
}

KnownShape Qwen3With4BInFp8() {
  KnownShape shape = Qwen3("qwen3-4b-fp8");
  shape.spec.weight_type = WeightType::kFp8Block;
  shape.spec.layers = 36;
  shape.spec.hidden = 2560;
  shape.spec.heads = 32;
  shape.spec.ffn = 9728;
  return shape;
}

KnownShape Qwen3With06B() {
  KnownShape shape = Qwen3("qwen3-0.6b");
  shape.spec.layers = 28;
  shape.spec.hidden = 1024;
  shape.spec.heads = 16;
  shape.spec.ffn = 3072;
  return shape;
}

/// Metadata and vocabulary of SmolLM2-135M-Instruct's GGUF file.
KnownShape SmolLm2() {
  KnownShape shape;
  ModelSpec& spec = shape.spec;
  spec.name = "smollm2-135m";
  spec.family = ModelFamily::kLlama;
  spec.layers = 30;
  spec.hidden = 576;
  spec.heads = 9;
  spec.kv_heads = 3;
  spec.head_dim = 64;
  spec.ffn = 1536;
  spec.vocabulary = 49152;
  spec.context = 8192;
  spec.norm_epsilon = 1e-5;
  spec.rope_theta = 100000;
  spec.tied_head = true;
  shape.yes_word = "True";
  shape.no_word = "False";
  shape.yes = {2787, 3635};
  shape.no = {4245, 4178};
  return shape;
}

}  // namespace

std::span<const KnownShape> KnownShapes() {
  static const std::vector<KnownShape> shapes = {Qwen3With4BInFp8(), Qwen3With06B(), SmolLm2()};
  return shapes;
}

const KnownShape* FindShape(std::string_view name) {
  const auto shapes = KnownShapes();
  const auto found = std::ranges::find_if(
      shapes, [&](const KnownShape& shape) { return shape.spec.name == name; });
  return found == shapes.end() ? nullptr : &*found;
}

}  // namespace quail::spec
