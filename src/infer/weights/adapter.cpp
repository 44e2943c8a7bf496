#include "infer/weights/adapter.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "infer/weights/gguf_weights.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

constexpr std::string_view kFormat = "quail-lora-1";
constexpr std::string_view kSuffixA = ".lora_a";
constexpr std::string_view kSuffixB = ".lora_b";
constexpr double kMaxRank = 4096;

[[noreturn]] void Refuse(const SafetensorsFile& file, const std::string& what) {
  throw Error(ErrorCode::kModel, fmt::format("adapter '{}': {}", file.name(), base::Escaped(what)));
}

std::string Text(const SafetensorsFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) Refuse(file, fmt::format("metadata has no {}", key));
  return found->second;
}

double Number(const SafetensorsFile& file, std::string_view key) {
  const std::string text = Text(file, key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    Refuse(file, fmt::format("{} is '{}', not a number", key, text.substr(0, 40)));
  }
  return value;
}

AdapterInfo ReadInfo(const SafetensorsFile& file) {
  if (Text(file, "format") != kFormat) Refuse(file, fmt::format("its format is not {}", kFormat));
  AdapterInfo info;
  const double rank = Number(file, "rank");
  if (!(rank >= 1 && rank <= kMaxRank)) Refuse(file, fmt::format("rank {}", rank));
  info.rank = static_cast<std::int32_t>(rank);
  info.alpha = Number(file, "alpha");
  info.margin_scale = Number(file, "margin_scale");
  if (!(info.margin_scale > 0)) Refuse(file, fmt::format("margin_scale {}", info.margin_scale));
  info.base_model = Text(file, "base_model");
  info.base_hash = Text(file, "base_hash");
  info.words = Text(file, "words");
  info.layout = Text(file, "layout");
  const std::string order = Text(file, "row_order");
  if (order != "gguf" && order != "hf") Refuse(file, fmt::format("row_order '{}'", order));
  info.gguf_row_order = order == "gguf";
  return info;
}

/// Both factors of one linear layer, f32.
struct Factors {
  std::int64_t rank = 0;
  std::vector<float> a;  ///< [rank, in], already times alpha / rank
  std::vector<float> b;  ///< [out, rank], rows in model order
};

class MergedTensor final : public WeightTensor {
 public:
  MergedTensor(std::shared_ptr<const WeightTensor> base, Factors factors)
      : base_(std::move(base)), factors_(std::move(factors)) {}
  const std::string& name() const override { return base_->name(); }
  std::int64_t rows() const override { return base_->rows(); }
  std::int64_t columns() const override { return base_->columns(); }
  void ReadRows(std::int64_t begin, std::int64_t end, float* out) const override {
    base_->ReadRows(begin, end, out);
    const std::int64_t width = columns();
    for (std::int64_t row = begin; row < end; ++row, out += width) {
      for (std::int64_t r = 0; r < factors_.rank; ++r) {
        const float weight = factors_.b[static_cast<std::size_t>(row * factors_.rank + r)];
        const float* a = factors_.a.data() + r * width;
        for (std::int64_t i = 0; i < width; ++i) out[i] += weight * a[i];
      }
    }
  }

 private:
  std::shared_ptr<const WeightTensor> base_;
  Factors factors_;
};

class AdaptedWeights final : public WeightSource {
 public:
  AdaptedWeights(std::shared_ptr<const WeightSource> base, std::shared_ptr<const Adapter> adapter,
                 const spec::ModelSpec& spec)
      : base_(std::move(base)), adapter_(std::move(adapter)), spec_(spec) {}

  std::shared_ptr<const WeightTensor> Find(std::string_view hf_name) const override {
    std::shared_ptr<const WeightTensor> tensor = base_->Find(hf_name);
    if (tensor == nullptr || !hf_name.ends_with(".weight")) return tensor;
    const std::string stem = Stem(hf_name);
    const SafetensorsEntry* a = adapter_->file().Find(stem + std::string(kSuffixA));
    const SafetensorsEntry* b = adapter_->file().Find(stem + std::string(kSuffixB));
    if (a == nullptr || b == nullptr) return tensor;
    if (a->columns != tensor->columns() || b->rows != tensor->rows()) {
      Refuse(adapter_->file(), fmt::format("{} is for [{}, {}], the model has [{}, {}]", stem,
                                           b->rows, a->columns, tensor->rows(), tensor->columns()));
    }
    Factors factors = ReadFactors(hf_name, *a, *b);
    return std::make_shared<MergedTensor>(std::move(tensor), std::move(factors));
  }

  base::Hash128 hash() const override {
    return base::Combine(base_->hash(), base::HashBytes(adapter_->file().bytes()));
  }

  /// Every layer that the adapter changes must be one of the model's.
  void CheckComplete() const {
    std::size_t used = 0;
    for (std::int32_t layer = 0; layer < spec_.layers; ++layer) {
      for (const std::string_view name : kLinearLayers) {
        const std::string hf_name = fmt::format("model.layers.{}.{}.weight", layer, name);
        if (adapter_->file().Find(Stem(hf_name) + std::string(kSuffixA)) == nullptr) continue;
        if (Find(hf_name) == nullptr) Refuse(adapter_->file(), "the model has no " + hf_name);
        used += 2;
      }
    }
    if (used != adapter_->file().entries().size()) {
      Refuse(adapter_->file(), fmt::format("{} of its {} tensors belong to no layer of the model",
                                           adapter_->file().entries().size() - used,
                                           adapter_->file().entries().size()));
    }
  }

 private:
  static constexpr std::string_view kLinearLayers[] = {
      "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
      "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};

  static std::string Stem(std::string_view hf_name) {
    const std::string name = GgufName(hf_name);
    return name.substr(0, name.rfind('.'));
  }

  Factors ReadFactors(std::string_view hf_name, const SafetensorsEntry& a,
                      const SafetensorsEntry& b) const {
    Factors factors;
    factors.rank = a.rows;
    factors.a.resize(static_cast<std::size_t>(a.rows * a.columns));
    ReadValues(a, 0, a.rows * a.columns, factors.a.data());
    const auto scale = static_cast<float>(adapter_->info().alpha / adapter_->info().rank);
    for (float& value : factors.a) value *= scale;
    factors.b.resize(static_cast<std::size_t>(b.rows * b.columns));
    const std::int64_t head =
        adapter_->info().gguf_row_order ? InterleavedHead(hf_name, b.rows, spec_) : 0;
    for (std::int64_t row = 0; row < b.rows; ++row) {
      const std::int64_t stored = head == 0 ? row : InterleavedRow(row, head);
      ReadValues(b, stored * b.columns, (stored + 1) * b.columns,
                 factors.b.data() + row * b.columns);
    }
    return factors;
  }

  std::shared_ptr<const WeightSource> base_;
  std::shared_ptr<const Adapter> adapter_;
  spec::ModelSpec spec_;
};

}  // namespace

std::shared_ptr<const Adapter> Adapter::Open(const std::filesystem::path& path) {
  return std::make_shared<Adapter>(SafetensorsFile::Open(path));
}

Adapter::Adapter(std::shared_ptr<const SafetensorsFile> file)
    : file_(std::move(file)), info_(ReadInfo(*file_)) {
  for (const auto& [name, entry] : file_->entries()) {
    if (!entry.type) Refuse(*file_, fmt::format("{} is of type {}", name, entry.type_name));
    const bool is_a = name.ends_with(kSuffixA);
    const bool is_b = name.ends_with(kSuffixB);
    const std::string stem = name.substr(0, name.size() - kSuffixA.size());
    const std::string other = stem + std::string(is_a ? kSuffixB : kSuffixA);
    if (!(is_a || is_b) || file_->Find(other) == nullptr) {
      Refuse(*file_, fmt::format("{} is not one of a pair lora_a, lora_b", name));
    }
    if ((is_a ? entry.rows : entry.columns) != info_.rank) {
      Refuse(*file_,
             fmt::format("{} is [{}, {}] at rank {}", name, entry.rows, entry.columns, info_.rank));
    }
  }
}

std::shared_ptr<const WeightSource> ApplyAdapter(std::shared_ptr<const WeightSource> base,
                                                 std::shared_ptr<const Adapter> adapter,
                                                 const spec::ModelSpec& spec) {
  const AdapterInfo& info = adapter->info();
  const std::string hash = base->hash().ToHex();
  if (hash != info.base_hash) {
    Refuse(adapter->file(), fmt::format("it was trained for the weights of {} (hash {}); those of "
                                        "this model have the hash {}. --adapter none runs the "
                                        "model without an adapter",
                                        info.base_model, info.base_hash, hash));
  }
  auto adapted = std::make_shared<AdaptedWeights>(std::move(base), std::move(adapter), spec);
  adapted->CheckComplete();
  return adapted;
}

}  // namespace quail::infer
