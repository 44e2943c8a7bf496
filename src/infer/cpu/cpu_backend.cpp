#include "infer/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/thread_pool.h"
#include "infer/cpu/cpu_attention.h"
#include "infer/cpu/cpu_log_probs.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/cpu/kv_memory.h"
#include "quail/error.h"

namespace quail::infer::cpu {
namespace {

// Query vectors of an attention tile: their scores against a key block, 48 KiB, stay in the
// second-level cache.
constexpr std::int32_t kTileVectors = 192;
constexpr std::int32_t kPreferredChunkTokens = 2048;
constexpr std::int32_t kMaxChunkTokens = 1 << 16;

/// A weight in one of its forms; the others are empty.
struct StoredWeight {
  LinearWeight linear;
  std::vector<std::byte> table;  ///< E [rows, columns]
  std::vector<float> values;     ///< vectors; the answer head [rows, columns]
  std::int64_t rows = 0;
};

struct CpuChunk final : Chunk {
  explicit CpuChunk(ReusePool<ChunkMemory>::Loan loan) : memory(std::move(loan)) {}

  PrefillBatch batch;
  ReusePool<ChunkMemory>::Loan memory;
  std::int64_t row_room = 0;              ///< R, rows that the buffers hold
  std::vector<std::int32_t> active_rows;  ///< rows of the hidden state, as rows of the batch
  AttentionPlan plan;
  const float* norm = nullptr;  ///< weight of the norm that `normed` went through
  std::vector<float> answer_logits;
  std::vector<float> log_probs;
  bool finished = false;

  std::int64_t rows() const { return static_cast<std::int64_t>(active_rows.size()); }
  /// Index of a batch row among the active ones.
  std::int64_t ActiveIndex(std::int32_t row) const {
    const auto found = std::ranges::lower_bound(active_rows, row);
    QUAIL_CHECK(found != active_rows.end() && *found == row);
    return found - active_rows.begin();
  }
};

CpuChunk& Cast(Chunk& chunk) { return static_cast<CpuChunk&>(chunk); }

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options)
      : kernels_(SelectKernels(options.isa)),
        engine_(options.type.value_or(Bf16IsFast() ? ElementType::kBf16 : ElementType::kF32)),
        pool_(options.threads) {
    if (engine_.type() == ElementType::kBf16 && !__builtin_cpu_supports("avx512bf16")) {
      throw Error(ErrorCode::kDevice, "this processor has no bf16 products");
    }
    info_.backend = "cpu";
    info_.device = ProcessorName();
    info_.threads = static_cast<std::int32_t>(pool_.size());
    info_.memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    info_.compute_type =
        engine_.type() == ElementType::kBf16 ? spec::WeightType::kBf16 : spec::WeightType::kF32;
    info_.preferred_chunk_tokens = kPreferredChunkTokens;
    info_.max_chunk_tokens = kMaxChunkTokens;
  }

  const BackendInfo& info() const override { return info_; }

  void Configure(const BackendModel& model) override;
  WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) override;
  WeightId LoadEmbedding(const WeightTensor& table) override;
  WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) override;
  WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) override;
  void ReserveKv(const KvShape& shape, std::int64_t tokens) override;

  std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) override;
  void Embed(Chunk& chunk, WeightId table, WeightId first_norm) override;
  void Qkv(Chunk& chunk, const QkvWeights& weights, std::int32_t layer, bool answers_only) override;
  void Attention(Chunk& chunk, std::int32_t layer) override;
  void AttentionOutput(Chunk& chunk, WeightId projection, WeightId next_norm) override;
  void GateUp(Chunk& chunk, WeightId gate_up) override;
  void Down(Chunk& chunk, WeightId down, WeightId next_norm) override;
  void AnswerLogits(Chunk& chunk, WeightId head) override;
  void LogProbs(Chunk& chunk, WeightId head, std::int32_t vocabulary) override;
  void Finish(Chunk& chunk) override { Cast(chunk).finished = true; }
  ChunkResult Wait(Chunk& chunk) override;

  void CopyKvOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) override;
  void CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                std::span<const std::byte> host) override;

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
  /// A row's K and V.
  struct KvPlace {
    std::int32_t layer = 0;
    std::int64_t row = 0;
  };

  std::size_t element_bytes() const { return SizeOf(engine_.type()); }
  std::int64_t hidden() const { return spec_.hidden; }
  WeightId Add(StoredWeight weight) {
    weights_.push_back(std::move(weight));
    return WeightId(static_cast<std::uint32_t>(weights_.size() - 1));
  }
  const StoredWeight& weight(WeightId id) const { return weights_[id.value()]; }
  const float* vector(WeightId id) const { return weight(id).values.data(); }

  void PackPending();
  void ReserveChunk(CpuChunk& chunk);
  void ComputeRotation(CpuChunk& chunk);
  void StoreElements(const float* values, std::int64_t count, std::byte* out) const;
  void LoadElements(const std::byte* values, std::int64_t count, float* out) const;
  void ForEachBlock(std::int64_t rows,
                    const std::function<void(const RowBlock&, WorkerScratch&)>& body);
  void Multiply(const LinearWeight& weight, const LinearWeight::Panel& panel,
                LinearEngine::Product product, WorkerScratch& scratch);
  void Normalise(CpuChunk& chunk, const RowBlock& block, WorkerScratch& scratch);
  void AddProduct(CpuChunk& chunk, const std::byte* x, WeightId id, WeightId next_norm);
  void ProjectBlock(CpuChunk& chunk, const QkvWeights& weights, std::int32_t layer,
                    const RowBlock& block, QkvColumns columns);
  void PlaceQueries(CpuChunk& chunk, const QkvWeights& weights, std::int64_t index, float* row);
  void PlaceKeysAndValues(CpuChunk& chunk, const QkvWeights& weights, const KvPlace& place,
                          float* key_row, float* value_row);
  void KeepAnswerRows(CpuChunk& chunk);
  void NormedRow(const CpuChunk& chunk, std::int32_t row, float* out) const;

  const CpuKernels& kernels_;
  LinearEngine engine_;
  base::ThreadPool pool_;
  BackendInfo info_;
  spec::ModelSpec spec_;
  Rope rope_;
  std::vector<StoredWeight> weights_;
  std::vector<std::function<void()>> pending_;
  KvMemory kv_;
  ReusePool<WorkerScratch> scratch_;
  ReusePool<ChunkMemory> chunk_memory_;
};

// ---- Loading ----

void CpuBackend::Configure(const BackendModel& model) {
  QUAIL_CHECK(weights_.empty());
  spec_ = model.spec;
  rope_ = model.rope;
  QUAIL_CHECK_EQ(rope_.inverse_frequencies.size(), static_cast<std::size_t>(spec_.head_dim / 2));
}

WeightId CpuBackend::LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  const WeightId id = Add({});
  // Packed together with the others, one thread a matrix.
  std::vector<std::shared_ptr<const WeightTensor>> kept(parts.begin(), parts.end());
  pending_.emplace_back([this, id, tensors = std::move(kept)] {
    weights_[id.value()].linear = engine_.Pack(tensors);
  });
  return id;
}

void CpuBackend::PackPending() {
  pool_.ForEach(pending_.size(), [this](std::size_t i) { pending_[i](); });
  pending_.clear();
}

WeightId CpuBackend::LoadEmbedding(const WeightTensor& table) {
  constexpr std::int64_t kRows = 512;
  StoredWeight stored;
  const std::int64_t columns = table.columns();
  stored.rows = table.rows();
  stored.table.resize(static_cast<std::size_t>(table.rows() * columns) * element_bytes());
  const std::int64_t blocks = (table.rows() + kRows - 1) / kRows;
  pool_.ForEach(static_cast<std::size_t>(blocks), [&](std::size_t i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * kRows;
    const std::int64_t end = std::min(begin + kRows, table.rows());
    std::byte* out =
        stored.table.data() + static_cast<std::size_t>(begin * columns) * element_bytes();
    if (engine_.type() == ElementType::kF32) {
      table.ReadRows(begin, end, reinterpret_cast<float*>(out));
      return;
    }
    std::vector<float> values(static_cast<std::size_t>((end - begin) * columns));
    table.ReadRows(begin, end, values.data());
    StoreElements(values.data(), (end - begin) * columns, out);
  });
  return Add(std::move(stored));
}

WeightId CpuBackend::LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) {
  StoredWeight stored;
  stored.rows = static_cast<std::int64_t>(rows.size());
  stored.values.resize(rows.size() * static_cast<std::size_t>(matrix.columns()));
  float* out = stored.values.data();
  for (const std::int32_t row : rows) {
    matrix.ReadRows(row, row + 1, out);
    out += matrix.columns();
  }
  return Add(std::move(stored));
}

WeightId CpuBackend::LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) {
  StoredWeight stored;
  for (const auto& part : parts) {
    const std::size_t begin = stored.values.size();
    stored.values.resize(begin + static_cast<std::size_t>(part->rows() * part->columns()));
    part->ReadRows(0, part->rows(), stored.values.data() + begin);
  }
  return Add(std::move(stored));
}

void CpuBackend::ReserveKv(const KvShape& shape, std::int64_t tokens) {
  PackPending();
  kv_ = KvMemory(shape, tokens, element_bytes());
  info_.kv_bytes_per_token = kv_.bytes_per_slot();
}

// ---- A chunk ----

std::unique_ptr<Chunk> CpuBackend::Begin(const PrefillBatch& batch) {
  PackPending();
  auto chunk = std::make_unique<CpuChunk>(chunk_memory_.Take());
  chunk->batch = batch;
  const auto rows = static_cast<std::size_t>(batch.rows());
  QUAIL_CHECK_EQ(batch.positions.size(), rows);
  QUAIL_CHECK_EQ(batch.kv_slots.size(), rows);
  chunk->active_rows.resize(rows);
  std::iota(chunk->active_rows.begin(), chunk->active_rows.end(), 0);
  ReserveChunk(*chunk);
  ComputeRotation(*chunk);
  chunk->plan = PlanAttention(chunk->batch.runs, chunk->batch.spans, chunk->active_rows,
                              std::max(1, kTileVectors / (spec_.heads / spec_.kv_heads)));
  return chunk;
}

void CpuBackend::ReserveChunk(CpuChunk& chunk) {
  chunk.row_room = chunk.rows() + kMaxProductRows;
  const auto room = static_cast<std::size_t>(chunk.row_room);
  const auto width = [](std::int32_t n) { return static_cast<std::size_t>(n); };
  ChunkMemory& memory = *chunk.memory;
  try {
    memory.hidden.Reserve(room * width(spec_.hidden) * sizeof(float));
    memory.normed.Reserve(room * width(spec_.hidden) * element_bytes());
    memory.queries.Reserve(room * width(spec_.q_width()) * sizeof(float));
    memory.keys.Reserve(room * width(spec_.kv_width()) * element_bytes());
    memory.values.Reserve(room * width(spec_.kv_width()) * element_bytes());
    memory.attention.Reserve(room * width(spec_.q_width()) * element_bytes());
    memory.inner.Reserve(room * width(spec_.ffn) * element_bytes());
    memory.cosine.Reserve(room * width(spec_.head_dim / 2) * sizeof(float));
    memory.sine.Reserve(room * width(spec_.head_dim / 2) * sizeof(float));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("no memory for a chunk of {} tokens", chunk.rows()));
  }
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

void CpuBackend::StoreElements(const float* values, std::int64_t count, std::byte* out) const {
  if (engine_.type() == ElementType::kF32) {
    std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    kernels_.to_bf16(values, static_cast<std::int32_t>(count),
                     reinterpret_cast<std::uint16_t*>(out));
  }
}

void CpuBackend::LoadElements(const std::byte* values, std::int64_t count, float* out) const {
  if (engine_.type() == ElementType::kF32) {
    std::memcpy(out, values, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    kernels_.from_bf16(reinterpret_cast<const std::uint16_t*>(values),
                       static_cast<std::int32_t>(count), out);
  }
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

void CpuBackend::Multiply(const LinearWeight& weight, const LinearWeight::Panel& panel,
                          LinearEngine::Product product, WorkerScratch& scratch) {
  product.rows = engine_.ProductRows(product.rows);
  engine_.Multiply(panel, weight.columns(), product, scratch.product);
}

void CpuBackend::Normalise(CpuChunk& chunk, const RowBlock& block, WorkerScratch& scratch) {
  const std::int64_t width = hidden();
  const auto epsilon = static_cast<float>(spec_.norm_epsilon);
  scratch.row.Reserve(static_cast<std::size_t>(width) * sizeof(float));
  for (std::int64_t row = block.first; row < block.first + block.rows; ++row) {
    kernels_.rms_norm(chunk.memory->hidden.floats() + row * width, chunk.norm, epsilon,
                      spec_.hidden, scratch.row.floats());
    StoreElements(
        scratch.row.floats(), width,
        chunk.memory->normed.data() + static_cast<std::size_t>(row * width) * element_bytes());
  }
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
      LoadElements(
          embedding.table.data() + static_cast<std::size_t>(token * width) * element_bytes(), width,
          chunk.memory->hidden.floats() + row * width);
    }
    Normalise(chunk, block, scratch);
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
  KeepAnswerRows(chunk);
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
  const std::byte* x = chunk.memory->normed.data() +
                       static_cast<std::size_t>(block.first * hidden()) * element_bytes();
  float* products[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    const LinearWeight::Panel& panel = projection.panels()[i];
    products[i] = scratch->rows.floats() + kMaxProductRows * panel.first_row;
    if (!(i == 0 ? columns.queries : columns.keys_and_values)) continue;
    Multiply(projection, panel, {block.rows, x, products[i], false}, *scratch);
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
  const std::size_t bytes = static_cast<std::size_t>(dim) * element_bytes();
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
    StoreElements(key, dim, chunk.memory->keys.data() + offset);
    StoreElements(value, dim, chunk.memory->values.data() + offset);
    if (slot < 0) continue;
    QUAIL_CHECK_LT(slot, kv_.slots());
    std::memcpy(kv_.Keys(layer, head, slot), chunk.memory->keys.data() + offset, bytes);
    std::memcpy(kv_.Values(layer, head, slot), chunk.memory->values.data() + offset, bytes);
  }
}

/// Moves the hidden state of answer and scored rows to the front.
void CpuBackend::KeepAnswerRows(CpuChunk& chunk) {
  std::vector<std::int32_t> kept = chunk.batch.answer_rows;
  for (const ScoredToken& scored : chunk.batch.scored_tokens) kept.push_back(scored.row);
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  const std::size_t hidden_bytes = static_cast<std::size_t>(hidden()) * sizeof(float);
  const std::size_t normed_bytes = static_cast<std::size_t>(hidden()) * element_bytes();
  std::byte* hidden_rows = chunk.memory->hidden.data();
  std::byte* normed_rows = chunk.memory->normed.data();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto row = static_cast<std::size_t>(chunk.ActiveIndex(kept[i]));
    if (row == i) continue;
    std::memcpy(hidden_rows + i * hidden_bytes, hidden_rows + row * hidden_bytes, hidden_bytes);
    std::memcpy(normed_rows + i * normed_bytes, normed_rows + row * normed_bytes, normed_bytes);
  }
  chunk.active_rows = std::move(kept);
  chunk.plan = PlanAttention(chunk.batch.runs, chunk.batch.spans, chunk.active_rows,
                             std::max(1, kTileVectors / (spec_.heads / spec_.kv_heads)));
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
  inputs.output = chunk.memory->attention.data();
  const auto kv_heads = static_cast<std::size_t>(spec_.kv_heads);
  pool_.ForEach(chunk.plan.tiles.size() * kv_heads, [&](std::size_t i) {
    const auto scratch = scratch_.Take();
    AttendTile(kernels_, inputs, chunk.plan,
               {i / kv_heads, static_cast<std::int32_t>(i % kv_heads)}, *scratch);
  });
}

/// hidden += X W^T, then the next norm, block by block.
void CpuBackend::AddProduct(CpuChunk& chunk, const std::byte* x, WeightId id, WeightId next_norm) {
  const LinearWeight& linear = weight(id).linear;
  QUAIL_CHECK_EQ(linear.panels().size(), std::size_t{1});
  chunk.norm = vector(next_norm);
  ForEachBlock(chunk.rows(), [&](const RowBlock& block, WorkerScratch& scratch) {
    const std::byte* rows =
        x + static_cast<std::size_t>(block.first * linear.columns()) * element_bytes();
    float* sums = chunk.memory->hidden.floats() + block.first * hidden();
    Multiply(linear, linear.panels().front(), {block.rows, rows, sums, true}, scratch);
    Normalise(chunk, block, scratch);
  });
}

void CpuBackend::AttentionOutput(Chunk& base, WeightId projection, WeightId next_norm) {
  CpuChunk& chunk = Cast(base);
  AddProduct(chunk, chunk.memory->attention.data(), projection, next_norm);
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
    const std::byte* x = chunk.memory->normed.data() +
                         static_cast<std::size_t>(block.first * hidden()) * element_bytes();
    Multiply(linear, linear.panels()[0], {block.rows, x, gates, false}, scratch);
    Multiply(linear, linear.panels()[1], {block.rows, x, ups, false}, scratch);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      float* gate = gates + i * ffn;
      kernels_.silu_product(gate, ups + i * ffn, spec_.ffn, gate);
      StoreElements(gate, ffn,
                    chunk.memory->inner.data() +
                        static_cast<std::size_t>((block.first + i) * ffn) * element_bytes());
    }
  });
}

void CpuBackend::Down(Chunk& base, WeightId down, WeightId next_norm) {
  CpuChunk& chunk = Cast(base);
  AddProduct(chunk, chunk.memory->inner.data(), down, next_norm);
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
  const std::size_t row_bytes = static_cast<std::size_t>(hidden()) * element_bytes();
  std::vector<ScoredState> states;
  for (const ScoredToken& scored : chunk.batch.scored_tokens) {
    const auto row = static_cast<std::size_t>(chunk.ActiveIndex(scored.row));
    states.push_back({chunk.memory->normed.data() + row * row_bytes, scored.token});
  }
  chunk.log_probs = ComputeLogProbs({pool_, scratch_, kernels_, engine_}, weight(head).linear,
                                    vocabulary, states);
}

ChunkResult CpuBackend::Wait(Chunk& base) {
  const CpuChunk& chunk = Cast(base);
  QUAIL_CHECK(chunk.finished);
  return {chunk.answer_logits, chunk.log_probs};
}

// ---- KV of a node out and in: slot by slot, then layer, head, K and V ----

void CpuBackend::CopyKvOut(std::int64_t first_slot, std::int64_t slots, std::span<std::byte> host) {
  QUAIL_CHECK_EQ(static_cast<std::int64_t>(host.size()), slots * kv_.bytes_per_slot());
  QUAIL_CHECK(first_slot >= 0 && first_slot + slots <= kv_.slots());
  std::byte* out = host.data();
  for (std::int64_t slot = first_slot; slot < first_slot + slots; ++slot) {
    for (std::int32_t layer = 0; layer < kv_.shape().layers; ++layer) {
      for (std::int32_t head = 0; head < kv_.shape().kv_heads; ++head) {
        std::memcpy(out, kv_.Keys(layer, head, slot), kv_.vector_bytes());
        std::memcpy(out + kv_.vector_bytes(), kv_.Values(layer, head, slot), kv_.vector_bytes());
        out += 2 * kv_.vector_bytes();
      }
    }
  }
}

void CpuBackend::CopyKvIn(std::int64_t first_slot, std::int64_t slots,
                          std::span<const std::byte> host) {
  QUAIL_CHECK_EQ(static_cast<std::int64_t>(host.size()), slots * kv_.bytes_per_slot());
  QUAIL_CHECK(first_slot >= 0 && first_slot + slots <= kv_.slots());
  const std::byte* in = host.data();
  for (std::int64_t slot = first_slot; slot < first_slot + slots; ++slot) {
    for (std::int32_t layer = 0; layer < kv_.shape().layers; ++layer) {
      for (std::int32_t head = 0; head < kv_.shape().kv_heads; ++head) {
        std::memcpy(kv_.Keys(layer, head, slot), in, kv_.vector_bytes());
        std::memcpy(kv_.Values(layer, head, slot), in + kv_.vector_bytes(), kv_.vector_bytes());
        in += 2 * kv_.vector_bytes();
      }
    }
  }
}

}  // namespace

std::unique_ptr<Backend> CreateCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options);
}

}  // namespace quail::infer::cpu
