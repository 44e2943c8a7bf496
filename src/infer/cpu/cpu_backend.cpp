#include "infer/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"
#include "infer/cpu/cpu_attention.h"
#include "infer/cpu/cpu_chunk.h"
#include "infer/cpu/cpu_elements.h"
#include "infer/cpu/cpu_log_probs.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/cpu/cpu_weights.h"
#include "infer/cpu/kv_memory.h"
#include "quail/error.h"

namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kMostPreferredChunkTokens = 2048;
constexpr std::int32_t kLeastPreferredChunkTokens = 128;
/// A cancel is heeded between two layers: a layer's products over a chunk take no longer than this
/// work does, half a second of a thread that manages 40 GFLOP/s.
constexpr double kLayerWorkOfAThread = 2e10;
constexpr std::int32_t kMaxChunkTokens = 1 << 16;

std::int32_t PreferredChunkTokens(const spec::ModelSpec& spec, std::size_t threads) {
  const double a_token =
      2.0 * static_cast<double>(spec.block_parameters()) / std::max(spec.layers, 1);
  const double tokens = kLayerWorkOfAThread * static_cast<double>(threads) / std::max(a_token, 1.0);
  return static_cast<std::int32_t>(
      std::clamp<double>(tokens, kLeastPreferredChunkTokens, kMostPreferredChunkTokens));
}

CpuChunk& Cast(Chunk& chunk) { return static_cast<CpuChunk&>(chunk); }

spec::WeightType ComputeType(const LinearEngine& engine) {
  if (engine.products() == ProductType::kInt8) return spec::WeightType::kInt8;
  return engine.type() == ElementType::kBf16 ? spec::WeightType::kBf16 : spec::WeightType::kF32;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : kernels_(options.kernels != nullptr ? *options.kernels : SelectKernels(options.isa)),
        engine_(options.type.value_or(BestType(options.products)), options.products, kernels_),
        pool_(options.threads),
        elements_(kernels_, engine_.type()),
        weights_(engine_, pool_, elements_) {
    if (engine_.type() == ElementType::kBf16) ChooseAttention(options);
    info_.backend = "cpu";
    info_.device = ProcessorName();
    info_.threads = static_cast<std::int32_t>(pool_.size());
    info_.memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    info_.compute_type = ComputeType(engine_);
    info_.kv_value_bytes = static_cast<std::int32_t>(elements_.bytes());
    info_.preferred_chunk_tokens = kMostPreferredChunkTokens;
    info_.max_chunk_tokens = kMaxChunkTokens;
    info_.deterministic = true;
  }

  const BackendInfo& info() const override { return info_; }

  void Configure(const BackendModel& model) override;
  WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return weights_.AddLinear(parts);
  }
  WeightId LoadEmbedding(const WeightTensor& table) override {
    return weights_.AddEmbedding(table);
  }
  WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) override {
    return weights_.AddRows(matrix, rows);
  }
  WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) override {
    return weights_.AddVector(parts);
  }
  void ReserveKv(const KvShape& shape, std::int64_t tokens) override;

  std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) override;
  void Embed(Chunk& base, WeightId table, WeightId first_norm) override;
  void Qkv(Chunk& base, const QkvWeights& weights, std::int32_t layer, bool answers_only) override;
  void Attention(Chunk& base, std::int32_t layer) override;
  void AttentionOutput(Chunk& base, WeightId projection, WeightId next_norm) override;
  void GateUp(Chunk& base, WeightId gate_up) override;
  void Down(Chunk& base, WeightId down, WeightId next_norm) override;
  void AnswerLogits(Chunk& base, WeightId head) override;
  void LogProbs(Chunk& base, WeightId head, std::int32_t vocabulary) override;
  void Finish(Chunk& base) override { Cast(base).finished = true; }
  ChunkResult Wait(Chunk& base) override;

  void CopyKvOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) override {
    kv_.CopyOut(first_slot, slots, host);
  }
  void CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                std::span<const std::byte> host) override {
    kv_.CopyIn(first_slot, slots, host);
  }

 private:
  struct RowBlock {
    std::int64_t first = 0;
    std::int64_t rows = 0;
  };
  /// Which columns of a Q, K, V projection are wanted.
  struct QkvColumns {
    bool queries = true;
    bool keys_and_values = true;
  };
  using BlockRows =
      std::function<LinearEngine::Input(const RowBlock&, std::int64_t columns, WorkerScratch&)>;
  /// A row's K and V.
  struct KvPlace {
    std::int32_t layer = 0;
    std::int64_t row = 0;
  };

  void ChooseAttention(const CpuOptions& options);
  std::int64_t hidden() const { return spec_.hidden; }
  const StoredWeight& weight(WeightId id) const { return weights_[id]; }
  const float* vector(WeightId id) const { return weights_.vector(id); }

  void ComputeRotation(CpuChunk& chunk);
  void ForEachBlock(std::int64_t rows,
                    const std::function<void(const RowBlock&, WorkerScratch&)>& body);
  LinearEngine::Input Prepare(const Buffer& x, const RowBlock& block, std::int64_t columns,
                              WorkerScratch& scratch) const;
  void Normalise(CpuChunk& chunk, std::int64_t row, WorkerScratch& scratch);
  void AddProduct(CpuChunk& chunk, WeightId id, WeightId next_norm, const BlockRows& rows);
  void ProjectBlock(CpuChunk& chunk, const QkvWeights& weights, std::int32_t layer,
                    const RowBlock& block, QkvColumns columns);
  void PlaceQueries(CpuChunk& chunk, const QkvWeights& weights, std::int64_t index, float* row);
  void PlaceKeysAndValues(CpuChunk& chunk, const QkvWeights& weights, const KvPlace& place,
                          float* key_row, float* value_row);
  void StoreVector(const float* vector, std::byte* out) const;
  void NormedRow(const CpuChunk& chunk, std::int32_t row, float* out) const;

  const CpuKernels& kernels_;
  const Bf16Kernels* bf16_ = nullptr;    ///< where products are bf16
  const Int8Attention* int8_ = nullptr;  ///< where attention is of bytes
  LinearEngine engine_;
  base::ThreadPool pool_;
  BackendInfo info_;
  spec::ModelSpec spec_;
  Rope rope_;
  Elements elements_;
  CpuWeights weights_;
  KvMemory kv_;
  ReusePool<WorkerScratch> scratch_;
  ReusePool<ChunkMemory> chunk_memory_;
};

// ---- Loading ----

/// Of keys and values in bf16.
void CpuBackend::ChooseAttention(const CpuOptions& options) {
  if (options.bf16 != nullptr || !SupportedBf16Units().empty()) {
    bf16_ = options.bf16 != nullptr ? options.bf16 : &SelectBf16Kernels();
  }
  // The tiles of AMX multiply bf16 faster than VNNI bytes.
  const bool tiles = bf16_ != nullptr && bf16_->unit == Bf16Unit::kAmx;
  if (options.products == ProductType::kInt8 && !tiles) {
    int8_ = options.int8 != nullptr ? options.int8 : SelectInt8Attention();
  }
  if (bf16_ == nullptr && int8_ == nullptr) {
    throw Error(ErrorCode::kDevice, "this processor has no bf16 products");
  }
}

void CpuBackend::Configure(const BackendModel& model) {
  QUAIL_CHECK(weights_.empty());
  spec_ = model.spec;
  rope_ = model.rope;
  if (int8_ != nullptr && spec_.head_dim < kLeastInt8Dim) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("int8 with heads of {} values", spec_.head_dim));
  }
  info_.preferred_chunk_tokens = PreferredChunkTokens(spec_, pool_.size());
  QUAIL_CHECK_EQ(rope_.inverse_frequencies.size(), static_cast<std::size_t>(spec_.head_dim / 2));
}

void CpuBackend::ReserveKv(const KvShape& shape, std::int64_t tokens) {
  weights_.PackPending();
  kv_ = KvMemory(shape, tokens, elements_.bytes());
  info_.kv_bytes_per_token = kv_.bytes_per_slot();
}

// ---- A chunk ----

std::unique_ptr<Chunk> CpuBackend::Begin(const PrefillBatch& batch) {
  weights_.PackPending();
  auto chunk =
      std::make_unique<CpuChunk>(batch, spec_, engine_, pool_.size(), chunk_memory_.Take());
  ComputeRotation(*chunk);
  return chunk;
}

void CpuBackend::ComputeRotation(CpuChunk& chunk) {
  const std::vector<float>& frequencies = rope_.inverse_frequencies;
  ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch&) {
    for (std::int64_t row = block.first; row < block.first + block.rows; ++row) {
      const double position = chunk.batch.positions[static_cast<std::size_t>(row)];
      const std::int64_t begin = row * static_cast<std::int64_t>(frequencies.size());
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        // In double: at position 40,000 an f32 angle is off by 0.002.
        const double angle = position * static_cast<double>(frequencies[i]);
        chunk.memory->cosine.floats()[begin + static_cast<std::int64_t>(i)] =
            static_cast<float>(std::cos(angle));
        chunk.memory->sine.floats()[begin + static_cast<std::int64_t>(i)] =
            static_cast<float>(std::sin(angle));
      }
    }
  });
}

/// Blocks of equal size, one that a product has, as many as make all threads end together; only the
/// last is ragged, and its product may run over into the room behind the rows.
void CpuBackend::ForEachBlock(std::int64_t rows,
                              const std::function<void(const RowBlock&, WorkerScratch&)>& body) {
  if (rows == 0) return;
  const auto threads = static_cast<std::int64_t>(pool_.size());
  const std::int64_t least = (rows + kMaxProductRows - 1) / kMaxProductRows;
  const std::int64_t wanted = (least + threads - 1) / threads * threads;
  const std::int64_t size = engine_.ProductRows((rows + wanted - 1) / wanted);
  const std::int64_t blocks = (rows + size - 1) / size;
  pool_.ForEach(static_cast<std::size_t>(blocks), [&](std::size_t i) {
    const std::int64_t first = static_cast<std::int64_t>(i) * size;
    const auto scratch = scratch_.Take();
    body({first, std::min(size, rows - first)}, *scratch);
  });
}

/// A block of the rows E [R, columns] of `x`.
LinearEngine::Input CpuBackend::Prepare(const Buffer& x, const RowBlock& block,
                                        std::int64_t columns, WorkerScratch& scratch) const {
  const std::byte* rows =
      x.data() + static_cast<std::size_t>(block.first * columns) * elements_.bytes();
  return engine_.Prepare(rows, block.rows, columns, scratch.product);
}

void CpuBackend::Normalise(CpuChunk& chunk, std::int64_t row, WorkerScratch& scratch) {
  scratch.row.Reserve(static_cast<std::size_t>(hidden()) * sizeof(float));
  kernels_.rms_norm(chunk.memory->hidden.floats() + row * hidden(), chunk.norm,
                    static_cast<float>(spec_.norm_epsilon), spec_.hidden, scratch.row.floats());
  engine_.Store(scratch.row.floats(), hidden(), row, chunk.memory->normed);
}

void CpuBackend::Embed(Chunk& base, WeightId table, WeightId first_norm) {
  CpuChunk& chunk = Cast(base);
  const StoredWeight& embedding = weight(table);
  const std::int64_t width = hidden();
  chunk.norm = vector(first_norm);
  ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch& scratch) {
    for (std::int64_t row = block.first; row < block.first + block.rows; ++row) {
      const std::int64_t token = chunk.batch.tokens[static_cast<std::size_t>(row)];
      QUAIL_CHECK(token >= 0 && token < embedding.rows);
      elements_.Load(
          embedding.table.data() + static_cast<std::size_t>(token * width) * elements_.bytes(),
          width, chunk.memory->hidden.floats() + row * width);
      Normalise(chunk, row, scratch);
    }
  });
}

void CpuBackend::Qkv(Chunk& base, const QkvWeights& weights, std::int32_t layer,
                     bool answers_only) {
  CpuChunk& chunk = Cast(base);
  const auto project = [&](QkvColumns columns) {
    ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch&) {
      ProjectBlock(chunk, weights, layer, block, columns);
    });
  };
  if (!answers_only) return project({true, true});
  project({false, true});
  chunk.KeepAnswerRows();
  project({true, false});
}

void CpuBackend::ProjectBlock(CpuChunk& chunk, const QkvWeights& weights, std::int32_t layer,
                              const RowBlock& block, QkvColumns columns) {
  const auto scratch = scratch_.Take();
  const LinearWeight& projection = weight(weights.projection).linear;
  // Q, K and V, each dense.
  QUAIL_CHECK_EQ(projection.panels().size(), std::size_t{3});
  scratch->rows.Reserve(static_cast<std::size_t>(kMaxProductRows * projection.rows()) *
                        sizeof(float));
  const LinearEngine::Input x =
      engine_.RowsOf(chunk.memory->normed, block.first, block.rows, hidden());
  float* products[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const LinearWeight::Panel& panel = projection.panels()[i];
    products[i] = scratch->rows.floats() + kMaxProductRows * panel.first_row;
    if (!(i == 0 ? columns.queries : columns.keys_and_values)) continue;
    engine_.Multiply(panel, {x, products[i], false}, scratch->product);
    if (!weights.bias) continue;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      kernels_.add(vector(*weights.bias) + panel.first_row, static_cast<std::int32_t>(panel.rows),
                   products[i] + row * panel.rows);
    }
  }
  const std::int64_t kv_width = spec_.kv_width();
  for (std::int64_t i = 0; i < block.rows; ++i) {
    if (columns.queries) {
      PlaceQueries(chunk, weights, block.first + i, products[0] + i * spec_.q_width());
    }
    if (columns.keys_and_values) {
      PlaceKeysAndValues(chunk, weights, {layer, block.first + i}, products[1] + i * kv_width,
                         products[2] + i * kv_width);
    }
  }
}

void CpuBackend::PlaceQueries(CpuChunk& chunk, const QkvWeights& weights, std::int64_t index,
                              float* row) {
  const std::int32_t dim = spec_.head_dim;
  const std::int64_t rotation =
      std::int64_t{chunk.active_rows[static_cast<std::size_t>(index)]} * (dim / 2);
  float* out = chunk.memory->queries.floats() + index * spec_.q_width();
  for (std::int32_t head = 0; head < spec_.heads; ++head) {
    float* values = row + std::int64_t{head} * dim;
    if (weights.q_norm) {
      kernels_.rms_norm(values, vector(*weights.q_norm), static_cast<float>(spec_.norm_epsilon),
                        dim, values);
    }
    kernels_.rotate(values, chunk.memory->cosine.floats() + rotation,
                    chunk.memory->sine.floats() + rotation, dim / 2,
                    out + std::int64_t{head} * dim);
  }
}

void CpuBackend::PlaceKeysAndValues(CpuChunk& chunk, const QkvWeights& weights,
                                    const KvPlace& place, float* key_row, float* value_row) {
  const std::int64_t index = place.row;
  const std::int32_t layer = place.layer;
  const std::int32_t dim = spec_.head_dim;
  const std::size_t bytes = static_cast<std::size_t>(dim) * elements_.bytes();
  const std::int64_t rotation = index * (dim / 2);
  const std::int64_t slot = chunk.batch.kv_slots[static_cast<std::size_t>(index)];
  for (std::int32_t head = 0; head < spec_.kv_heads; ++head) {
    float* key = key_row + std::int64_t{head} * dim;
    const float* value = value_row + std::int64_t{head} * dim;
    if (weights.k_norm) {
      kernels_.rms_norm(key, vector(*weights.k_norm), static_cast<float>(spec_.norm_epsilon), dim,
                        key);
    }
    kernels_.rotate(key, chunk.memory->cosine.floats() + rotation,
                    chunk.memory->sine.floats() + rotation, dim / 2, key);
    const std::size_t offset = static_cast<std::size_t>(head * chunk.row_room + index) * bytes;
    StoreVector(key, chunk.memory->keys.data() + offset);
    StoreVector(value, chunk.memory->values.data() + offset);
    if (slot < 0) continue;
    QUAIL_CHECK_LT(slot, kv_.slots());
    std::memcpy(kv_.Keys(layer, head, slot), chunk.memory->keys.data() + offset, bytes);
    std::memcpy(kv_.Values(layer, head, slot), chunk.memory->values.data() + offset, bytes);
  }
}

/// A key or value as attention takes it.
void CpuBackend::StoreVector(const float* vector, std::byte* out) const {
  elements_.Store(vector, spec_.head_dim, out);
  if (int8_ != nullptr) int8_->quantise(reinterpret_cast<std::uint16_t*>(out), spec_.head_dim);
}

void CpuBackend::Attention(Chunk& base, std::int32_t layer) {
  CpuChunk& chunk = Cast(base);
  AttentionInputs inputs;
  inputs.runs = chunk.batch.runs;
  inputs.spans = chunk.batch.spans;
  inputs.active_rows = chunk.active_rows;
  inputs.queries = chunk.memory->queries.floats();
  inputs.chunk_keys = chunk.memory->keys.data();
  inputs.chunk_values = chunk.memory->values.data();
  inputs.chunk_rows = chunk.row_room;
  inputs.arena = &kv_;
  inputs.layer = layer;
  inputs.heads = spec_.heads;
  inputs.kv_heads = spec_.kv_heads;
  inputs.head_dim = spec_.head_dim;
  inputs.type = engine_.type();
  inputs.bf16 = bf16_;
  inputs.int8 = int8_;
  inputs.output = chunk.memory->attention.data();
  const auto kv_heads = static_cast<std::size_t>(spec_.kv_heads);
  pool_.ForEach(chunk.plan.tiles.size() * kv_heads, [&](std::size_t i) {
    const auto scratch = scratch_.Take();
    AttendTile(kernels_, inputs, chunk.plan,
               {i / kv_heads, static_cast<std::int32_t>(i % kv_heads)}, *scratch);
  });
}

/// hidden += X W^T, then the next norm, block by block; `rows` gives a block's rows of X.
void CpuBackend::AddProduct(CpuChunk& chunk, WeightId id, WeightId next_norm,
                            const BlockRows& rows) {
  const LinearWeight& linear = weight(id).linear;
  QUAIL_CHECK_EQ(linear.panels().size(), std::size_t{1});
  chunk.norm = vector(next_norm);
  ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch& scratch) {
    float* sums = chunk.memory->hidden.floats() + block.first * hidden();
    const LinearEngine::Unfinished product =
        engine_.Begin(linear.panels().front(), {rows(block, linear.columns(), scratch), sums, true},
                      scratch.product);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      engine_.Finish(product, i);
      Normalise(chunk, block.first + i, scratch);
    }
  });
}

void CpuBackend::AttentionOutput(Chunk& base, WeightId projection, WeightId next_norm) {
  CpuChunk& chunk = Cast(base);
  AddProduct(chunk, projection, next_norm,
             [&](const RowBlock& block, std::int64_t columns, WorkerScratch& scratch) {
               return Prepare(chunk.memory->attention, block, columns, scratch);
             });
}

void CpuBackend::GateUp(Chunk& base, WeightId gate_up) {
  CpuChunk& chunk = Cast(base);
  const LinearWeight& linear = weight(gate_up).linear;
  QUAIL_CHECK_EQ(linear.panels().size(), std::size_t{2});
  const std::int64_t ffn = spec_.ffn;
  ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch& scratch) {
    scratch.rows.Reserve(static_cast<std::size_t>(kMaxProductRows * 2 * ffn) * sizeof(float));
    float* gates = scratch.rows.floats();
    float* ups = gates + kMaxProductRows * ffn;
    const LinearEngine::Input x =
        engine_.RowsOf(chunk.memory->normed, block.first, block.rows, hidden());
    const auto gate_product = engine_.Begin(linear.panels()[0], {x, gates, false}, scratch.product);
    const auto up_product = engine_.Begin(linear.panels()[1], {x, ups, false}, scratch.product);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      float* gate = gates + i * ffn;
      engine_.Finish(gate_product, i);
      engine_.Finish(up_product, i);
      kernels_.silu_product(gate, ups + i * ffn, spec_.ffn, gate);
      engine_.Store(gate, ffn, block.first + i, chunk.memory->inner);
    }
  });
}

void CpuBackend::Down(Chunk& base, WeightId down, WeightId next_norm) {
  CpuChunk& chunk = Cast(base);
  AddProduct(chunk, down, next_norm,
             [&](const RowBlock& block, std::int64_t columns, WorkerScratch&) {
               return engine_.RowsOf(chunk.memory->inner, block.first, block.rows, columns);
             });
}

// ---- Reading ----

/// The final norm in f32, whatever the element type.
void CpuBackend::NormedRow(const CpuChunk& chunk, std::int32_t row, float* out) const {
  kernels_.rms_norm(chunk.memory->hidden.floats() + chunk.ActiveIndex(row) * hidden(), chunk.norm,
                    static_cast<float>(spec_.norm_epsilon), spec_.hidden, out);
}

void CpuBackend::AnswerLogits(Chunk& base, WeightId head) {
  CpuChunk& chunk = Cast(base);
  const StoredWeight& rows = weight(head);
  const std::vector<std::int32_t>& answers = chunk.batch.answer_rows;
  const auto width = static_cast<std::size_t>(rows.rows);
  chunk.answer_logits.resize(answers.size() * width);
  std::vector<float> normed(static_cast<std::size_t>(hidden()));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    NormedRow(chunk, answers[i], normed.data());
    for (std::size_t j = 0; j < width; ++j) {
      chunk.answer_logits[i * width + j] = kernels_.dot(
          normed.data(), rows.values.data() + j * static_cast<std::size_t>(hidden()), spec_.hidden);
    }
  }
}

void CpuBackend::LogProbs(Chunk& base, WeightId head, std::int32_t vocabulary) {
  CpuChunk& chunk = Cast(base);
  std::vector<ScoredState> states;
  states.reserve(chunk.batch.scored_tokens.size());
  for (const ScoredToken& scored : chunk.batch.scored_tokens) {
    states.push_back({chunk.ActiveIndex(scored.row), scored.token});
  }
  chunk.log_probs = ComputeLogProbs({pool_, scratch_, kernels_, engine_, chunk.memory->normed},
                                    weight(head).linear, vocabulary, states);
}

ChunkResult CpuBackend::Wait(Chunk& base) {
  const CpuChunk& chunk = Cast(base);
  QUAIL_CHECK(chunk.finished);
  return {chunk.answer_logits, chunk.log_probs};
}

}  // namespace

ElementType BestType(ProductType products) {
  // Attention of bytes reads bf16 and multiplies none.
  const bool bytes = products == ProductType::kInt8 && SelectInt8Attention() != nullptr;
  return bytes || Bf16IsFast() ? ElementType::kBf16 : ElementType::kF32;
}

std::unique_ptr<Backend> CreateCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace quail::infer::cpu
