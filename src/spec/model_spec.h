#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quail::spec {

class GgufFile;

enum class ModelFamily : std::uint8_t { kLlama, kQwen2, kQwen3 };

/// What sets a family apart.
struct FamilyTraits {
  ModelFamily family;
  std::string_view name;  ///< as config.json and GGUF files write it
  bool qk_norm = false;
  bool qkv_bias = false;
  bool interleaved_in_gguf = false;  ///< rows of Q and K in the order of adjacent rotary pairs
};

/// All families.
std::span<const FamilyTraits> Families();
const FamilyTraits& TraitsOf(ModelFamily family);

/// How the weights of the linear layers are stored or computed with.
enum class WeightType : std::uint8_t { kF32, kF16, kBf16, kFp8Block, kFp8Row, kInt8 };

/// Scaling of rotary frequencies as Llama 3.1 publishes it (config key rope_scaling, type
/// "llama3").
struct RopeScaling {
  double factor = 1.0;  ///< 1 = none
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::int32_t original_context = 8192;
};

/// The shape of a decoder-only transformer: all that cost model, scheduler and model files need to
/// know.
struct ModelSpec {
  std::string name;
  ModelFamily family = ModelFamily::kLlama;
  WeightType weight_type = WeightType::kBf16;
  std::int32_t layers = 0;
  std::int32_t hidden = 0;    ///< C
  std::int32_t heads = 0;     ///< H
  std::int32_t kv_heads = 0;  ///< K
  std::int32_t head_dim = 0;  ///< D, as read; not always hidden / heads
  std::int32_t ffn = 0;
  std::int32_t vocabulary = 0;  ///< rows of the embedding, padding included
  std::int32_t context = 0;     ///< positions
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  bool qk_norm = false;  ///< RMS norm of every query and key head
  bool qkv_bias = false;
  bool tied_head = false;  ///< the output head is the embedding

  std::int32_t q_width() const { return heads * head_dim; }
  std::int32_t kv_width() const { return kv_heads * head_dim; }
  /// Weights of the linear layers of all blocks, embedding and head not counted.
  std::int64_t block_parameters() const {
    const std::int64_t attention = std::int64_t{hidden} * (2 * q_width() + 2 * kv_width());
    return layers * (attention + std::int64_t{3} * hidden * ffn);
  }
};

std::string_view NameOf(WeightType type);

/// The spec in a GGUF file's metadata and tensor directory. Quantised files count as kBf16. Scaled
/// rotary frequencies of such files are a tensor ("rope_freqs.weight"), not part of the spec.
/// Throws Error{kModel | kCorrupt | kUnsupported} naming file and key.
ModelSpec ReadModelSpec(const GgufFile& file);
/// The name of a matrix of the layers that is not stored in blocks of integers (Q8_0, Q4_0 ..);
/// nullopt where all are.
std::optional<std::string> FindUnquantisedLayer(const GgufFile& file);
/// The spec in a Hugging Face config.json; `name` stands for the file in messages. The same errors.
ModelSpec ReadModelSpec(std::string_view config_json, const std::string& name);

}  // namespace quail::spec
