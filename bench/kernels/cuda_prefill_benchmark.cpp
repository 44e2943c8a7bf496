// Prefill on the GPU at the Qwen3-4B block-fp8 shapes with made-up weights: whole forward passes
// and single verbs, on a filter chunk (documents with a question) and a join chunk (partners behind
// a kept anchor). Prints tokens/s and microseconds per fresh token and, sampled while it runs,
// clocks and watts; writes JSON lines to the file named by the first argument. A second argument
// leaves only the lines whose name contains it.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "infer/cuda/cuda_backend.h"
#include "infer/model.h"
#include "infer/weights/fp8_block_weights.h"
#include "infer/weights/random_weights.h"
#include "quail/error.h"
#include "spec/known_shapes.h"

namespace {

using quail::infer::Backend;
using quail::infer::KeySpan;
using quail::infer::PrefillBatch;
using quail::infer::WeightId;

constexpr std::int32_t kChunk = 32768;
constexpr double kSeconds = 4;

void AddRun(PrefillBatch& batch, std::int32_t rows, std::int32_t position,
            const std::vector<KeySpan>& spans, std::int64_t first_slot) {
  static std::mt19937 random(7);
  batch.runs.push_back({batch.rows(), rows, static_cast<std::int32_t>(batch.spans.size()),
                        static_cast<std::int32_t>(spans.size())});
  batch.spans.insert(batch.spans.end(), spans.begin(), spans.end());
  for (std::int32_t i = 0; i < rows; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random() % 150000));
    batch.positions.push_back(position + i);
    batch.kv_slots.push_back(first_slot < 0 ? -1 : first_slot + i);
  }
}

/// Documents of lognormal length (mean about 300), each with a question of 51 tokens that reads it
/// in the chunk.
PrefillBatch FilterChunk() {
  PrefillBatch batch;
  std::mt19937 random(11);
  std::lognormal_distribution<double> length(5.55, 0.55);
  while (true) {
    const auto document = static_cast<std::int32_t>(std::clamp(length(random), 20.0, 2000.0));
    if (batch.rows() + document + 51 > kChunk) return batch;
    const std::int32_t first = batch.rows();
    AddRun(batch, document, 0, {}, -1);
    AddRun(batch, 51, document, {{first, document, KeySpan::Place::kChunk}}, -1);
    batch.answer_rows.push_back(batch.rows() - 1);
  }
}

/// One chunk that fills `anchors` anchors of `length` tokens in the arena.
PrefillBatch AnchorChunk(std::int32_t anchors, std::int32_t length) {
  PrefillBatch batch;
  for (std::int32_t i = 0; i < anchors; ++i) AddRun(batch, length, 0, {}, std::int64_t{i} * 4160);
  return batch;
}

/// Partners of 9 fresh tokens (the label is kept with the anchor), behind each anchor in turn.
PrefillBatch JoinChunk(std::int32_t anchors, std::int32_t length, std::int32_t partner) {
  PrefillBatch batch;
  const std::int32_t pairs = kChunk / partner;
  for (std::int32_t i = 0; i < pairs; ++i) {
    const std::int64_t anchor = std::int64_t{i} * anchors / pairs;
    AddRun(batch, partner, length, {{anchor * 4160, length, KeySpan::Place::kArena}}, -1);
    batch.answer_rows.push_back(batch.rows() - 1);
  }
  return batch;
}

std::string ReadGpu() {
  std::string text;
  FILE* pipe =
      popen("nvidia-smi --query-gpu=clocks.sm,power.draw --format=csv,noheader,nounits", "r");
  if (pipe == nullptr) return "?, ?";
  char line[256];
  while (fgets(line, sizeof(line), pipe) != nullptr) text += line;
  pclose(pipe);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

struct Measurement {
  double seconds = 0;  ///< of one pass
  std::string gpu;     ///< "clock MHz, watts" in the middle of the run
};

/// Repeats `pass` (asynchronous) until kSeconds have gone by, two in flight.
Measurement Repeat(Backend& backend, const PrefillBatch& batch,
                   const std::function<void(quail::infer::Chunk&)>& pass) {
  const auto start = [&] {
    auto chunk = backend.Begin(batch);
    pass(*chunk);
    return chunk;
  };
  auto first = start();
  backend.Wait(*first);
  first.reset();
  Measurement result;
  quail::base::Stopwatch watch;
  auto previous = start();
  int passes = 0;
  while (watch.seconds() < kSeconds) {
    auto next = start();
    if (result.gpu.empty() && watch.seconds() > kSeconds / 2) result.gpu = ReadGpu();
    backend.Wait(*previous);
    previous = std::move(next);
    ++passes;
  }
  backend.Wait(*previous);
  result.seconds = watch.seconds() / (passes + 1);
  return result;
}

class Report {
 public:
  Report(const char* path, std::string only)
      : file_(path == nullptr ? nullptr : std::fopen(path, "w")), only_(std::move(only)) {}
  ~Report() {
    if (file_ != nullptr) std::fclose(file_);
  }

  void Add(const std::string& name, std::int64_t tokens,
           const std::function<Measurement()>& measure) {
    if (name.find(only_) == std::string::npos) return;
    const Measurement m = measure();
    const double per_token = m.seconds * 1e6 / static_cast<double>(tokens);
    fmt::print("{:34} {:8} tokens {:9.3f} ms {:8.3f} us/token {:9.0f} tokens/s  [{} MHz, W]\n",
               name, tokens, m.seconds * 1e3, per_token, static_cast<double>(tokens) / m.seconds,
               m.gpu);
    std::fflush(stdout);
    if (file_ == nullptr) return;
    fmt::print(file_,
               R"({{"name": "{}", "tokens": {}, "seconds": {}, "clock_and_watts": "{}"}})"
               "\n",
               name, tokens, m.seconds, m.gpu);
  }

 private:
  std::FILE* file_;
  std::string only_;
};

/// The verbs one by one, on the weights of layer 0: each repeated as often as a pass has layers.
void MeasureVerbs(Backend& backend, const quail::infer::WeightSource& weights,
                  const std::string& shape, const PrefillBatch& batch, Report& report) {
  const std::int32_t layers = quail::spec::FindShape("qwen3-4b-fp8")->spec.layers;
  const auto tensor = [&](const char* name) {
    return weights.Find(fmt::format("model.layers.0.{}", name));
  };
  const auto linear = [&](std::vector<std::shared_ptr<const quail::infer::WeightTensor>> parts) {
    return backend.LoadLinear(parts);
  };
  const auto vector = [&](const char* name) {
    const auto part = tensor(name);
    return backend.LoadVector(std::span(&part, 1));
  };
  quail::infer::QkvWeights qkv;
  qkv.projection = linear({tensor("self_attn.q_proj.weight"), tensor("self_attn.k_proj.weight"),
                           tensor("self_attn.v_proj.weight")});
  qkv.q_norm = vector("self_attn.q_norm.weight");
  qkv.k_norm = vector("self_attn.k_norm.weight");
  const WeightId output = linear({tensor("self_attn.o_proj.weight")});
  const WeightId gate_up = linear({tensor("mlp.gate_proj.weight"), tensor("mlp.up_proj.weight")});
  const WeightId down = linear({tensor("mlp.down_proj.weight")});
  const WeightId norm = vector("input_layernorm.weight");
  const auto measure = [&](const char* verb,
                           const std::function<void(quail::infer::Chunk&)>& call) {
    report.Add(shape + " " + verb, batch.rows(), [&] {
      return Repeat(backend, batch, [&](quail::infer::Chunk& chunk) {
        for (std::int32_t layer = 0; layer < layers; ++layer) call(chunk);
        backend.Finish(chunk);
      });
    });
  };
  measure("qkv + rope", [&](quail::infer::Chunk& c) { backend.Qkv(c, qkv, 0, false); });
  measure("attention", [&](quail::infer::Chunk& c) { backend.Attention(c, 0); });
  measure("output + norm",
          [&](quail::infer::Chunk& c) { backend.AttentionOutput(c, output, norm); });
  measure("gate/up + swiglu", [&](quail::infer::Chunk& c) { backend.GateUp(c, gate_up); });
  measure("down + norm", [&](quail::infer::Chunk& c) { backend.Down(c, down, norm); });
}

void Run(const char* path, const std::string& only) {
  const quail::spec::ModelSpec spec = quail::spec::FindShape("qwen3-4b-fp8")->spec;
  auto backend = quail::infer::cuda::CreateCudaBackend({.max_chunk_tokens = kChunk});
  auto weights = quail::infer::QuantizeToFp8Blocks(quail::infer::CreateRandomWeights(spec, 1));
  quail::base::Stopwatch watch;
  const auto model =
      quail::infer::LoadModel({spec, {20611, 8214, 30351, 7833}, false}, *weights, *backend);
  fmt::print("{}; loaded in {:.1f} s\n", backend->info().device, watch.seconds());
  constexpr std::int32_t kAnchors = 7;
  constexpr std::int32_t kAnchorTokens = 4104;
  backend->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, kAnchors * 4160);
  Report report(path, only);
  const auto forward = [&](const PrefillBatch& batch) {
    return [&] {
      return Repeat(*backend, batch, [&](quail::infer::Chunk& chunk) {
        model->Forward(*backend, chunk, batch, nullptr);
      });
    };
  };
  // Every shape is run once before anything is measured: verbs alone must work on what a layer
  // leaves behind, and partners on anchors, since zeros draw less power and run faster.
  const auto run_once = [&](const PrefillBatch& batch) {
    const auto chunk = backend->Begin(batch);
    model->Forward(*backend, *chunk, batch, nullptr);
    backend->Wait(*chunk);
  };
  const PrefillBatch anchors = AnchorChunk(kAnchors, kAnchorTokens);
  run_once(anchors);
  report.Add("anchors 4,104: forward", anchors.rows(), forward(anchors));
  const PrefillBatch filter = FilterChunk();
  run_once(filter);
  report.Add("filter: forward", filter.rows(), forward(filter));
  MeasureVerbs(*backend, *weights, "filter:", filter, report);
  const PrefillBatch join = JoinChunk(kAnchors, kAnchorTokens, 9);
  run_once(join);
  report.Add("join 4,104 x 9: forward", join.rows(), forward(join));
  MeasureVerbs(*backend, *weights, "join:", join, report);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run(argc > 1 ? argv[1] : nullptr, argc > 2 ? argv[2] : "");
  } catch (const quail::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 3;
  }
  return 0;
}
