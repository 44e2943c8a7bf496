#include "infer/weights/gguf_weights.h"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "infer/weights/block_formats.h"

namespace quail::infer {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 3> kModelNames = {{
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
}};

constexpr std::array<NamePair, 11> kLayerNames = {{
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
}};

constexpr std::string_view kLayerPrefix = "model.layers.";

class GgufWeightTensor final : public WeightTensor {
 public:
  /// `interleaved_head`: head size where rows lie interleaved, else 0.
  GgufWeightTensor(std::shared_ptr<const spec::GgufFile> file, const spec::GgufTensor& tensor,
                   std::string name, std::int64_t interleaved_head)
      : file_(std::move(file)),
        tensor_(tensor),
        name_(std::move(name)),
        head_(interleaved_head),
        row_bytes_(tensor.columns / spec::BlockOf(tensor.type).values *
                   spec::BlockOf(tensor.type).bytes) {}

  const std::string& name() const override { return name_; }
  std::int64_t rows() const override { return tensor_.rows; }
  std::int64_t columns() const override { return tensor_.columns; }

  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    for (std::int64_t row = begin; row < end; ++row, out += tensor_.columns) {
      Dequantise(tensor_.type,
                 tensor_.data.data() + (head_ == 0 ? row : InterleavedRow(row, head_)) * row_bytes_,
                 tensor_.columns, out);
    }
  }

  std::optional<std::span<const std::byte>> bf16_data() const override {
    if (tensor_.type != spec::GgufType::kBf16 || head_ != 0) return std::nullopt;
    return tensor_.data;
  }

 private:
  std::shared_ptr<const spec::GgufFile> file_;
  spec::GgufTensor tensor_;
  std::string name_;
  std::int64_t head_;
  std::int64_t row_bytes_;
};

class GgufWeights final : public WeightSource {
 public:
  GgufWeights(std::shared_ptr<const spec::GgufFile> file, const spec::ModelSpec& spec)
      : file_(std::move(file)), spec_(spec) {}

  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    const spec::GgufTensor* tensor = file_->FindTensor(GgufName(hf_name));
    if (tensor == nullptr) return nullptr;
    return std::make_shared<GgufWeightTensor>(file_, *tensor, std::string(hf_name),
                                              InterleavedHead(hf_name, tensor->rows, spec_));
  }

  base::Hash128 hash() const override {
    std::call_once(hashed_, [this] { hash_ = base::HashBytes(file_->bytes()); });
    return hash_;
  }

 private:
  std::shared_ptr<const spec::GgufFile> file_;
  spec::ModelSpec spec_;
  mutable std::once_flag hashed_;
  mutable base::Hash128 hash_;
};

}  // namespace

std::string GgufName(std::string_view hf_name) {
  const std::size_t dot = hf_name.rfind('.');
  if (dot == std::string_view::npos) return std::string(hf_name);
  const std::string_view stem = hf_name.substr(0, dot);
  const std::string_view suffix = hf_name.substr(dot);
  for (const auto& [hf, gguf] : kModelNames) {
    if (stem == hf) return fmt::format("{}{}", gguf, suffix);
  }
  if (!stem.starts_with(kLayerPrefix)) return std::string(hf_name);
  const std::string_view rest = stem.substr(kLayerPrefix.size());
  const std::size_t layer_end = rest.find('.');
  if (layer_end == std::string_view::npos) return std::string(hf_name);
  for (const auto& [hf, gguf] : kLayerNames) {
    if (rest.substr(layer_end + 1) == hf) {
      return fmt::format("blk.{}.{}{}", rest.substr(0, layer_end), gguf, suffix);
    }
  }
  return std::string(hf_name);
}

std::int64_t InterleavedHead(std::string_view hf_name, std::int64_t rows,
                             const spec::ModelSpec& spec) {
  const bool rotated = hf_name.find("self_attn.q_proj.") != std::string_view::npos ||
                       hf_name.find("self_attn.k_proj.") != std::string_view::npos;
  // A count of rows that no whole number of heads makes is refused by its shape later.
  const bool whole = rows % spec.head_dim == 0;
  return spec::TraitsOf(spec.family).interleaved_in_gguf && rotated && whole ? spec.head_dim : 0;
}

std::int64_t InterleavedRow(std::int64_t row, std::int64_t head) {
  const std::int64_t in_head = row % head;
  const std::int64_t half = head / 2;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

std::shared_ptr<const WeightSource> OpenGgufWeights(std::shared_ptr<const spec::GgufFile> file,
                                                    const spec::ModelSpec& spec) {
  return std::make_shared<GgufWeights>(std::move(file), spec);
}

}  // namespace quail::infer
