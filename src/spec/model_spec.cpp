#include "spec/model_spec.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "quail/error.h"
#include "spec/gguf_file.h"

namespace quail::spec {
namespace {

using nlohmann::json;

constexpr std::array kFamilies = {
    FamilyTraits{.family = ModelFamily::kLlama, .name = "llama", .interleaved_in_gguf = true},
    FamilyTraits{.family = ModelFamily::kQwen2, .name = "qwen2", .qkv_bias = true},
    FamilyTraits{.family = ModelFamily::kQwen3, .name = "qwen3", .qk_norm = true},
};

// No published decoder comes near; a larger number is a broken file, and products of two stay in 64
// bits.
constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 24;

[[noreturn]] void Refuse(ErrorCode code, const std::string& file, const std::string& what) {
  throw Error(code, fmt::format("'{}': {}", file, base::Escaped(what)));
}

ModelFamily FamilyOf(std::string_view architecture, const std::string& file) {
  const auto* found = std::ranges::find(kFamilies, architecture, &FamilyTraits::name);
  if (found != kFamilies.end()) return found->family;
  Refuse(ErrorCode::kUnsupported, file,
         fmt::format("model family '{}' is not supported ({} are)", architecture.substr(0, 80),
                     fmt::join(kFamilies | std::views::transform(&FamilyTraits::name), ", ")));
}

std::int32_t Extent(std::uint64_t value, std::string_view key, const std::string& file) {
  if (value == 0 || value > kMaxExtent) {
    Refuse(ErrorCode::kModel, file, fmt::format("{} is {}", key, value));
  }
  return static_cast<std::int32_t>(value);
}

void CheckShape(const ModelSpec& spec, const std::string& file) {
  if (spec.heads % spec.kv_heads != 0) {
    Refuse(ErrorCode::kModel, file,
           fmt::format("{} heads are no multiple of {} key heads", spec.heads, spec.kv_heads));
  }
  if (spec.head_dim % 2 != 0 || spec.head_dim > 1024) {
    Refuse(ErrorCode::kModel, file, fmt::format("head size {}", spec.head_dim));
  }
  if (!(spec.norm_epsilon > 0 && spec.norm_epsilon < 1)) {
    Refuse(ErrorCode::kModel, file, fmt::format("norm epsilon {}", spec.norm_epsilon));
  }
  if (!(spec.rope_theta > 1 && spec.rope_theta < 1e12)) {
    Refuse(ErrorCode::kModel, file, fmt::format("rotary base {}", spec.rope_theta));
  }
}

void ApplyFamily(ModelSpec& spec) {
  spec.qk_norm = TraitsOf(spec.family).qk_norm;
  spec.qkv_bias = TraitsOf(spec.family).qkv_bias;
}

std::int32_t HeadSize(std::optional<std::uint64_t> given, const ModelSpec& spec,
                      const std::string& file) {
  if (given) return Extent(*given, "head size", file);
  if (spec.hidden % spec.heads != 0) {
    Refuse(ErrorCode::kModel, file,
           fmt::format("{} hidden values for {} heads, and no head size", spec.hidden, spec.heads));
  }
  return spec.hidden / spec.heads;
}

// ---- GGUF ----

/// Metadata keys under the architecture's prefix.
class GgufKeys {
 public:
  explicit GgufKeys(const GgufFile& file)
      : file_(file), prefix_(std::string(file.String("general.architecture")) + ".") {}

  std::int32_t extent(std::string_view key) const {
    return Extent(file_.Uint(prefix_ + std::string(key)), key, file_.name());
  }
  std::optional<std::uint64_t> uint(std::string_view key) const {
    return file_.FindUint(prefix_ + std::string(key));
  }
  std::optional<double> number(std::string_view key) const {
    return file_.FindNumber(prefix_ + std::string(key));
  }
  std::optional<std::string_view> string(std::string_view key) const {
    return file_.FindString(prefix_ + std::string(key));
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

WeightType StoredType(const GgufFile& file) {
  const GgufTensor* tensor = file.FindTensor("blk.0.attn_q.weight");
  if (tensor == nullptr) return WeightType::kBf16;
  if (tensor->type == GgufType::kF32) return WeightType::kF32;
  if (tensor->type == GgufType::kF16) return WeightType::kF16;
  return WeightType::kBf16;
}

void CheckRotary(const GgufKeys& keys, const ModelSpec& spec, const std::string& file) {
  const std::uint64_t rotated =
      keys.uint("rope.dimension_count").value_or(static_cast<std::uint64_t>(spec.head_dim));
  if (rotated != static_cast<std::uint64_t>(spec.head_dim)) {
    Refuse(ErrorCode::kUnsupported, file,
           fmt::format("rotary embedding on {} of {} values of a head", rotated, spec.head_dim));
  }
  const std::string_view scaling = keys.string("rope.scaling.type").value_or("none");
  if (scaling != "none") {
    Refuse(ErrorCode::kUnsupported, file,
           fmt::format("rotary scaling '{}'", scaling.substr(0, 80)));
  }
}

// ---- config.json ----

/// Fields of a config.json by type.
class Config {
 public:
  Config(const json& object, const std::string& file) : object_(object), file_(file) {}

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  std::optional<std::uint64_t> uint(const char* key) const {
    if (!has(key)) return std::nullopt;
    if (!object_[key].is_number_unsigned()) WrongType(key);
    return object_[key].get<std::uint64_t>();
  }
  std::int32_t extent(const char* key) const {
    if (!has(key)) Refuse(ErrorCode::kModel, file_, fmt::format("no {}", key));
    return Extent(*uint(key), key, file_);
  }
  std::optional<double> number(const char* key) const {
    if (!has(key)) return std::nullopt;
    if (!object_[key].is_number()) WrongType(key);
    return object_[key].get<double>();
  }
  bool truth(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!object_[key].is_boolean()) WrongType(key);
    return object_[key].get<bool>();
  }
  std::string string(const char* key, const char* otherwise) const {
    if (!has(key)) return otherwise;
    if (!object_[key].is_string()) WrongType(key);
    return object_[key].get<std::string>();
  }
  /// Empty when there is none.
  Config object(const char* key) const {
    static const json kEmpty = json::object();
    if (!has(key)) return {kEmpty, file_};
    if (!object_[key].is_object()) WrongType(key);
    return {object_[key], file_};
  }

 private:
  [[noreturn]] void WrongType(const char* key) const {
    Refuse(ErrorCode::kModel, file_, fmt::format("{} has the wrong type", key));
  }

  const json& object_;
  const std::string& file_;
};

RopeScaling ReadScaling(const Config& scaling, const std::string& file) {
  RopeScaling result;
  const std::string type = scaling.string("rope_type", scaling.string("type", "default").c_str());
  if (type == "default") return result;
  if (type != "llama3") {
    Refuse(ErrorCode::kUnsupported, file, fmt::format("rotary scaling '{}'", type.substr(0, 80)));
  }
  result.factor = scaling.number("factor").value_or(8.0);
  result.low_frequency_factor = scaling.number("low_freq_factor").value_or(1.0);
  result.high_frequency_factor = scaling.number("high_freq_factor").value_or(4.0);
  result.original_context = Extent(scaling.uint("original_max_position_embeddings").value_or(8192),
                                   "original_max_position_embeddings", file);
  if (!(result.factor >= 1 && result.low_frequency_factor > 0 &&
        result.high_frequency_factor > result.low_frequency_factor)) {
    Refuse(ErrorCode::kModel, file, "rotary scaling factors contradict each other");
  }
  return result;
}

WeightType ConfiguredType(const Config& config, const std::string& file) {
  const Config quantisation = config.object("quantization_config");
  const std::string method = quantisation.string("quant_method", "");
  if (method == "fp8") return WeightType::kFp8Block;
  if (!method.empty()) {
    Refuse(ErrorCode::kUnsupported, file, fmt::format("quantisation '{}'", method.substr(0, 80)));
  }
  const std::string type = config.string("torch_dtype", config.string("dtype", "bfloat16").c_str());
  if (type == "float32") return WeightType::kF32;
  if (type == "float16") return WeightType::kF16;
  return WeightType::kBf16;
}

void CheckFeatures(const Config& config, const std::string& file) {
  if (config.string("hidden_act", "silu") != "silu") {
    Refuse(ErrorCode::kUnsupported, file, "hidden_act other than silu");
  }
  if (config.truth("attention_bias", false) || config.truth("mlp_bias", false)) {
    Refuse(ErrorCode::kUnsupported, file, "attention_bias or mlp_bias");
  }
  if (config.truth("use_sliding_window", false)) {
    Refuse(ErrorCode::kUnsupported, file, "use_sliding_window");
  }
}

}  // namespace

std::span<const FamilyTraits> Families() { return kFamilies; }

const FamilyTraits& TraitsOf(ModelFamily family) {
  const auto* found = std::ranges::find(kFamilies, family, &FamilyTraits::family);
  QUAIL_CHECK(found != kFamilies.end());
  return *found;
}

std::string_view NameOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "f32";
    case WeightType::kF16:
      return "f16";
    case WeightType::kBf16:
      return "bf16";
    case WeightType::kFp8Block:
      return "fp8 (128 x 128 blocks)";
    case WeightType::kFp8Row:
      return "fp8 (rows)";
    case WeightType::kInt8:
      return "int8";
  }
  QUAIL_CHECK(false);
}

std::optional<std::string> FindUnquantisedLayer(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    const bool matrix = tensor.name.starts_with("blk.") && tensor.rows > 1;
    if (matrix && BlockOf(tensor.type).values == 1) return base::Escaped(tensor.name);
  }
  return std::nullopt;
}

ModelSpec ReadModelSpec(const GgufFile& file) {
  ModelSpec spec;
  spec.family = FamilyOf(file.String("general.architecture"), file.name());
  const GgufKeys keys(file);
  spec.name = base::Escaped(file.FindString("general.name").value_or(file.name()));
  spec.weight_type = StoredType(file);
  spec.layers = keys.extent("block_count");
  spec.hidden = keys.extent("embedding_length");
  spec.heads = keys.extent("attention.head_count");
  spec.kv_heads =
      Extent(keys.uint("attention.head_count_kv").value_or(static_cast<std::uint64_t>(spec.heads)),
             "attention.head_count_kv", file.name());
  spec.head_dim = HeadSize(keys.uint("attention.key_length"), spec, file.name());
  spec.ffn = keys.extent("feed_forward_length");
  spec.context = keys.extent("context_length");
  const GgufTensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) Refuse(ErrorCode::kModel, file.name(), "no tensor token_embd.weight");
  spec.vocabulary =
      Extent(static_cast<std::uint64_t>(embedding->rows), "token_embd.weight rows", file.name());
  spec.norm_epsilon = keys.number("attention.layer_norm_rms_epsilon").value_or(1e-5);
  spec.rope_theta = keys.number("rope.freq_base").value_or(10000.0);
  spec.tied_head = file.FindTensor("output.weight") == nullptr;
  ApplyFamily(spec);
  CheckRotary(keys, spec, file.name());
  CheckShape(spec, file.name());
  return spec;
}

ModelSpec ReadModelSpec(std::string_view config_json, const std::string& name) {
  const json parsed = json::parse(config_json, nullptr, false);
  if (!parsed.is_object()) Refuse(ErrorCode::kCorrupt, name, "not a JSON object");
  const Config config(parsed, name);
  ModelSpec spec;
  spec.family = FamilyOf(config.string("model_type", ""), name);
  spec.name = config.string("_name_or_path", name.c_str());
  spec.weight_type = ConfiguredType(config, name);
  spec.layers = config.extent("num_hidden_layers");
  spec.hidden = config.extent("hidden_size");
  spec.heads = config.extent("num_attention_heads");
  spec.kv_heads =
      config.has("num_key_value_heads") ? config.extent("num_key_value_heads") : spec.heads;
  spec.head_dim = HeadSize(config.uint("head_dim"), spec, name);
  spec.ffn = config.extent("intermediate_size");
  spec.vocabulary = config.extent("vocab_size");
  spec.context = config.extent("max_position_embeddings");
  spec.norm_epsilon = config.number("rms_norm_eps").value_or(1e-6);
  // Transformers 5 moved the base into rope_parameters and renamed rope_scaling.
  const Config parameters = config.object("rope_parameters");
  spec.rope_theta =
      config.number("rope_theta").value_or(parameters.number("rope_theta").value_or(10000.0));
  spec.rope_scaling =
      ReadScaling(config.has("rope_scaling") ? config.object("rope_scaling") : parameters, name);
  spec.tied_head = config.truth("tie_word_embeddings", false);
  ApplyFamily(spec);
  CheckFeatures(config, name);
  CheckShape(spec, name);
  return spec;
}

}  // namespace quail::spec
