// Loading a safetensors checkpoint of the Qwen3-4B shape straight to the GPU, block fp8 and bf16,
// from a warm and from a cold file cache. Writes the checkpoints, with made-up values, into the
// folder named by the second argument (12.5 GB; default: the folder for temporary files) and
// removes them; JSON lines go to the file named by the first.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/model.h"
#include "infer/weights/safetensors_weights.h"
#include "quail/error.h"
#include "spec/known_shapes.h"

namespace {

using quail::infer::PrefillBatch;
using quail::spec::ModelSpec;

struct Tensor {
  std::string name;
  const char* type;
  std::int64_t rows;
  std::int64_t columns;
  std::size_t bytes() const {
    const std::size_t element = std::string(type) == "BF16" ? 2 : 1;
    return static_cast<std::size_t>(rows * columns) * element;
  }
};

std::vector<Tensor> TensorsOf(const ModelSpec& spec, bool fp8) {
  std::vector<Tensor> tensors;
  const auto linear = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({name + ".weight", fp8 ? "F8_E4M3" : "BF16", rows, columns});
    if (fp8) tensors.push_back({name + ".weight_scale_inv", "BF16", rows / 128, columns / 128});
  };
  const auto vector = [&](const std::string& name, std::int64_t columns) {
    tensors.push_back({name + ".weight", "BF16", 1, columns});
  };
  tensors.push_back({"model.embed_tokens.weight", "BF16", spec.vocabulary, spec.hidden});
  vector("model.norm", spec.hidden);
  for (std::int32_t i = 0; i < spec.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    vector(layer + "input_layernorm", spec.hidden);
    vector(layer + "post_attention_layernorm", spec.hidden);
    vector(layer + "self_attn.q_norm", spec.head_dim);
    vector(layer + "self_attn.k_norm", spec.head_dim);
    linear(layer + "self_attn.q_proj", spec.q_width(), spec.hidden);
    linear(layer + "self_attn.k_proj", spec.kv_width(), spec.hidden);
    linear(layer + "self_attn.v_proj", spec.kv_width(), spec.hidden);
    linear(layer + "self_attn.o_proj", spec.hidden, spec.q_width());
    linear(layer + "mlp.gate_proj", spec.ffn, spec.hidden);
    linear(layer + "mlp.up_proj", spec.ffn, spec.hidden);
    linear(layer + "mlp.down_proj", spec.hidden, spec.ffn);
  }
  return tensors;
}

/// Values of both signs and one magnitude or two: finite in either type.
class Filler {
 public:
  void Fill(const char* type, std::vector<std::uint64_t>& words) {
    const bool bf16 = std::string(type) == "BF16";
    const std::uint64_t keep = bf16 ? 0x807F807F807F807FU : 0x8787878787878787U;
    const std::uint64_t set = bf16 ? 0x3C003C003C003C00U : 0x3030303030303030U;
    for (std::uint64_t& word : words) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      word = (state_ & keep) | set;
    }
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
};

void Write(const std::filesystem::path& path, const std::vector<Tensor>& tensors) {
  nlohmann::json head = nlohmann::json::object();
  std::size_t at = 0;
  for (const Tensor& tensor : tensors) {
    const auto shape = tensor.rows == 1 ? nlohmann::json{tensor.columns}
                                        : nlohmann::json{tensor.rows, tensor.columns};
    head[tensor.name] = {
        {"dtype", tensor.type}, {"shape", shape}, {"data_offsets", {at, at + tensor.bytes()}}};
    at += tensor.bytes();
  }
  std::string text = head.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  Filler filler;
  std::vector<std::uint64_t> words(std::size_t{4} << 20);
  for (const Tensor& tensor : tensors) {
    for (std::size_t left = tensor.bytes(); left > 0;) {
      const std::size_t part = std::min(left, words.size() * 8);
      filler.Fill(tensor.type, words);
      file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(part));
      left -= part;
    }
  }
  if (!file.flush()) {
    throw quail::Error(quail::ErrorCode::kIo, fmt::format("cannot write '{}'", path.string()));
  }
}

/// Writes back and drops a file's cached pages.
void DropCache(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  QUAIL_CHECK(file >= 0);
  ::fsync(file);
  QUAIL_CHECK_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
  ::close(file);
}

struct Loading {
  double start_seconds = 0;  ///< of the driver and the libraries
  double load_seconds = 0;
  std::vector<float> logits;
};

Loading Load(const ModelSpec& spec, const std::filesystem::path& folder) {
  Loading loading;
  quail::base::Stopwatch watch;
  const auto backend = quail::infer::cuda::CreateCudaBackend({});
  loading.start_seconds = watch.seconds();
  watch.Restart();
  const auto weights = quail::infer::OpenSafetensorsWeights(folder);
  const auto model =
      quail::infer::LoadModel({spec, {20611, 8214, 30351, 7833}, false}, *weights, *backend);
  backend->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, 4096);
  loading.load_seconds = watch.seconds();
  PrefillBatch batch;
  batch.runs.push_back({0, 100, 0, 0});
  for (std::int32_t i = 0; i < 100; ++i) {
    batch.tokens.push_back(i * 1009);
    batch.positions.push_back(i);
    batch.kv_slots.push_back(-1);
  }
  batch.answer_rows = {99};
  const auto chunk = backend->Begin(batch);
  model->Forward(*backend, *chunk, batch, nullptr);
  const auto result = backend->Wait(*chunk);
  loading.logits.assign(result.answer_logits.begin(), result.answer_logits.end());
  return loading;
}

void Measure(bool fp8, const std::filesystem::path& folder, std::FILE* out) {
  ModelSpec spec = quail::spec::FindShape("qwen3-4b-fp8")->spec;
  if (!fp8) spec.weight_type = quail::spec::WeightType::kBf16;
  const auto file = folder / "model.safetensors";
  quail::base::Stopwatch watch;
  Write(file, TensorsOf(spec, fp8));
  const auto bytes = static_cast<double>(std::filesystem::file_size(file));
  fmt::print("wrote {:.2f} GB in {:.1f} s\n", bytes / 1e9, watch.seconds());
  std::vector<float> logits;
  // What has just been written is in the cache.
  for (const char* cache : {"warm", "cold"}) {
    if (std::strcmp(cache, "cold") == 0) DropCache(file);
    const Loading loading = Load(spec, folder);
    const std::string line =
        fmt::format(R"({{"name": "load {}", "cache": "{}", "bytes": {:.0f}, "seconds": {:.3f}, )"
                    R"("gb_per_s": {:.2f}, "start_seconds": {:.3f}}})",
                    fp8 ? "block fp8" : "bf16", cache, bytes, loading.load_seconds,
                    bytes / 1e9 / loading.load_seconds, loading.start_seconds);
    fmt::print("{}\n", line);
    std::fflush(stdout);
    if (out != nullptr) fmt::print(out, "{}\n", line);
    if (logits.empty()) logits = loading.logits;
    QUAIL_CHECK(loading.logits == logits);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name =
      ((argc > 2 ? std::filesystem::path(argv[2]) : std::filesystem::temp_directory_path()) /
       "quail-load-XXXXXX")
          .string();
  if (::mkdtemp(name.data()) == nullptr) {
    fmt::print(stderr, "error: cannot make the folder '{}'\n", name);
    return 2;
  }
  std::FILE* out = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
  int code = 0;
  try {
    for (const bool fp8 : {true, false}) Measure(fp8, name, out);
  } catch (const quail::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    code = 3;
  }
  if (out != nullptr) std::fclose(out);
  std::filesystem::remove_all(name);
  return code;
}
