// Forward passes of the CPU backend, and oneDNN's bare products of the same shapes beside them.
//
// usage: prefill_benchmark MODEL.gguf [THREADS [f32|bf16|int8 ..]]
//   One measurement for each type named, in one run.
// Prints, in wall and in processor seconds (a busy machine stretches only the first):
//   load       opening and packing the weights
//   products   the linear layers alone, tokens/s: the ceiling
//   documents  fresh tokens/s of documents of 300 tokens, chunks of 2,048 rows
//   join       pairs/s of partners of 15 tokens after an anchor of 4,000 that is in the arena

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "infer/cpu/cpu_backend.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/model.h"
#include "infer/weights/gguf_weights.h"
#include "process_usage.h"

namespace {

using quail::bench::ProcessorSeconds;
using namespace quail::infer;  // NOLINT(google-build-using-namespace)
using quail::spec::ModelSpec;

constexpr std::int32_t kChunk = 2048;
constexpr std::int64_t kProducts = kChunk / cpu::kMaxProductRows;  ///< calls for most of a chunk
constexpr std::int32_t kDocument = 300;
constexpr std::int32_t kAnchor = 4000;
constexpr std::int32_t kPartner = 15;
constexpr int kRounds = 3;
constexpr double kEnoughSeconds = 30;

struct Seconds {
  double wall = 1e30;
  double processor = 1e30;
};

/// The least of some rounds, each clock for itself; no new one after kEnoughSeconds.
template <typename Body>
Seconds Best(Body body) {
  Seconds best;
  const quail::base::Stopwatch begun;
  for (int round = 0; round < kRounds && begun.seconds() < kEnoughSeconds; ++round) {
    const quail::base::Stopwatch watch;
    const double before = ProcessorSeconds();
    body();
    best.wall = std::min(best.wall, watch.seconds());
    best.processor = std::min(best.processor, ProcessorSeconds() - before);
  }
  return best;
}

void Print(const char* name, double count, const char* unit, const Seconds& seconds) {
  std::printf("%-10s %9.1f %s/s of wall, %9.1f %s/s of processor time\n", name,
              count / seconds.wall, unit, count / seconds.processor, unit);
}

class BatchMaker {
 public:
  void Add(std::int32_t tokens, std::int32_t position, std::int32_t anchor, std::int64_t slot) {
    batch_.runs.push_back({batch_.rows(), tokens, static_cast<std::int32_t>(batch_.spans.size()),
                           anchor > 0 ? 1 : 0});
    if (anchor > 0) batch_.spans.push_back({0, anchor, KeySpan::Place::kArena});
    for (std::int32_t i = 0; i < tokens; ++i) {
      state_ = state_ * 1664525U + 1013904223U;
      batch_.tokens.push_back(static_cast<std::int32_t>((state_ >> 8) % 49000U));
      batch_.positions.push_back(position + i);
      batch_.kv_slots.push_back(slot < 0 ? -1 : slot + i);
    }
    batch_.answer_rows.push_back(batch_.rows() - 1);
  }
  PrefillBatch Take() { return std::exchange(batch_, {}); }

 private:
  PrefillBatch batch_;
  std::uint32_t state_ = 1;
};

void Run(const Model& model, Backend& backend, const PrefillBatch& batch) {
  const auto chunk = backend.Begin(batch);
  model.Forward(backend, *chunk, batch, nullptr);
  backend.Wait(*chunk);
}

/// Seconds of all linear layers of one block on kChunk rows, times the number of blocks.
Seconds MeasureProducts(const WeightSource& weights, const ModelSpec& spec,
                        const cpu::CpuOptions& options, std::size_t threads) {
  cpu::LinearEngine engine(*options.type, options.products);
  std::vector<cpu::LinearWeight> layers;
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                           "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    const auto tensor = weights.Find(std::string("model.layers.0.") + name + ".weight");
    layers.push_back(engine.Pack(std::span(&tensor, 1)));
  }
  quail::base::ThreadPool pool(threads);
  cpu::ReusePool<cpu::WorkerScratch> scratch;
  Seconds seconds = Best([&] {
    pool.ForEach(static_cast<std::size_t>(kProducts), [&](std::size_t) {
      const auto memory = scratch.Take();
      for (const cpu::LinearWeight& layer : layers) {
        const auto columns = static_cast<std::size_t>(layer.columns());
        memory->queries.Reserve(cpu::kMaxProductRows * columns * sizeof(float));
        memory->rows.Reserve(cpu::kMaxProductRows * static_cast<std::size_t>(layer.rows()) *
                             sizeof(float));
        engine.Multiply(layer.panels()[0],
                        {engine.Prepare(memory->queries.data(), cpu::kMaxProductRows,
                                        layer.columns(), memory->product),
                         memory->rows.floats(), false},
                        memory->product);
      }
    });
  });
  const double chunks =
      static_cast<double>(kChunk) / static_cast<double>(kProducts * cpu::kMaxProductRows);
  return {seconds.wall * spec.layers * chunks, seconds.processor * spec.layers * chunks};
}

cpu::CpuOptions OptionsOf(const char* type, std::size_t threads) {
  cpu::CpuOptions options;
  options.threads = threads;
  if (std::strcmp(type, "int8") == 0) options.products = cpu::ProductType::kInt8;
  options.type = cpu::BestType(options.products);
  if (std::strcmp(type, "f32") == 0) options.type = cpu::ElementType::kF32;
  if (std::strcmp(type, "bf16") == 0) options.type = cpu::ElementType::kBf16;
  return options;
}

void Measure(const char* path, std::size_t threads, const cpu::CpuOptions& options) {
  const quail::base::Stopwatch watch;
  const double before = ProcessorSeconds();
  const auto file = quail::spec::GgufFile::Open(path);
  const ModelSpec spec = quail::spec::ReadModelSpec(*file);
  const auto weights = OpenGgufWeights(file, spec);
  const auto backend = cpu::CreateCpuBackend(options);
  const auto model = LoadModel({spec, {10, 20, 30, 40}, false}, *weights, *backend);
  backend->ReserveKv({spec.layers, spec.kv_heads, spec.head_dim}, kAnchor);
  std::printf("%s, %s, %d threads, %s, own loops %s\n", path, backend->info().device.c_str(),
              backend->info().threads,
              std::string(quail::spec::NameOf(backend->info().compute_type)).c_str(),
              std::string(cpu::SelectKernels(options.isa).name).c_str());
  std::printf("load       %.2f s of wall, %.2f s of processor time\n", watch.seconds(),
              ProcessorSeconds() - before);

  const Seconds products = MeasureProducts(*weights, spec, options, threads);
  Print("products", kChunk, "tokens", products);
  const double flop = 2.0 * static_cast<double>(spec.block_parameters()) * kChunk;
  std::printf("           %.0f GFLOP/s of wall, %.0f of processor time\n",
              flop / products.wall * 1e-9, flop / products.processor * 1e-9);

  BatchMaker maker;
  for (std::int32_t rows = 0; rows + kDocument <= kChunk; rows += kDocument) {
    maker.Add(kDocument, 0, 0, -1);
  }
  const PrefillBatch documents = maker.Take();
  const Seconds forward = Best([&] { Run(*model, *backend, documents); });
  Print("documents", documents.rows(), "tokens", forward);
  std::printf("           %.0f %% of the products' rate in processor time\n",
              100.0 * documents.rows() / forward.processor / (kChunk / products.processor));

  maker.Add(kAnchor, 0, 0, 0);
  Run(*model, *backend, maker.Take());
  for (std::int32_t rows = 0; rows + kPartner <= kChunk; rows += kPartner) {
    maker.Add(kPartner, kAnchor, kAnchor, -1);
  }
  const PrefillBatch pairs = maker.Take();
  const Seconds join = Best([&] { Run(*model, *backend, pairs); });
  Print("join", static_cast<double>(pairs.runs.size()), "pairs", join);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: prefill_benchmark MODEL.gguf [THREADS [f32|bf16|int8 ..]]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::size_t threads = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 0;
  try {
    if (argc <= 3) Measure(argv[1], threads, OptionsOf("best", threads));
    for (int i = 3; i < argc; ++i) Measure(argv[1], threads, OptionsOf(argv[i], threads));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
