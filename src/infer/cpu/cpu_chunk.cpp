#include "infer/cpu/cpu_chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "infer/cpu/cpu_linear.h"
#include "quail/error.h"

namespace quail::infer::cpu {
namespace {

// Query vectors of an attention tile: enough that packing a key block for them costs little, and
// few enough that their output, 192 KiB, stays in the second-level cache.
constexpr std::int64_t kMostTileVectors = 768;
constexpr std::int64_t kLeastTileVectors = 192;
constexpr std::int64_t kTilesOfAThread = 4;

std::int32_t TileQueries(const spec::ModelSpec& spec, std::int64_t rows, std::size_t threads) {
  const std::int64_t tiles = kTilesOfAThread * static_cast<std::int64_t>(threads);
  const std::int64_t vectors =
      std::clamp(rows * spec.heads / tiles, kLeastTileVectors, kMostTileVectors);
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(1, vectors / (spec.heads / spec.kv_heads)));
}

}  // namespace

CpuChunk::CpuChunk(const PrefillBatch& batch_in, const spec::ModelSpec& spec,
                   const LinearEngine& engine, std::size_t threads,
                   ReusePool<ChunkMemory>::Loan loan)
    : batch(batch_in),
      memory(std::move(loan)),
      hidden_bytes_(static_cast<std::size_t>(spec.hidden) * sizeof(float)),
      normed_bytes_(engine.RowBytes(spec.hidden)),
      tile_queries_(TileQueries(spec, batch.rows(), threads)) {
  const auto count = static_cast<std::size_t>(batch.rows());
  QUAIL_CHECK_EQ(batch.positions.size(), count);
  QUAIL_CHECK_EQ(batch.kv_slots.size(), count);
  active_rows.resize(count);
  std::iota(active_rows.begin(), active_rows.end(), 0);
  Reserve(spec, engine);
  Plan();
}

void CpuChunk::Plan() { plan = PlanAttention(batch.runs, batch.spans, active_rows, tile_queries_); }

std::int64_t CpuChunk::ActiveIndex(std::int32_t row) const {
  const auto found = std::ranges::lower_bound(active_rows, row);
  QUAIL_CHECK(found != active_rows.end() && *found == row);
  return found - active_rows.begin();
}

void CpuChunk::Reserve(const spec::ModelSpec& spec, const LinearEngine& engine) {
  row_room = rows() + kMaxProductRows;
  const auto room = static_cast<std::size_t>(row_room);
  const auto width = [](std::int32_t n) { return static_cast<std::size_t>(n); };
  const std::size_t element_bytes = SizeOf(engine.type());
  ChunkMemory& buffers = *memory;
  try {
    buffers.hidden.Reserve(room * width(spec.hidden) * sizeof(float));
    engine.Reserve(row_room, spec.hidden, buffers.normed);
    buffers.queries.Reserve(room * width(spec.q_width()) * sizeof(float));
    buffers.keys.Reserve(room * width(spec.kv_width()) * element_bytes);
    buffers.values.Reserve(room * width(spec.kv_width()) * element_bytes);
    buffers.attention.Reserve(room * width(spec.q_width()) * element_bytes);
    engine.Reserve(row_room, spec.ffn, buffers.inner);
    buffers.cosine.Reserve(room * width(spec.head_dim / 2) * sizeof(float));
    buffers.sine.Reserve(room * width(spec.head_dim / 2) * sizeof(float));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, fmt::format("no memory for a chunk of {} tokens", rows()));
  }
}

void CpuChunk::KeepAnswerRows() {
  std::vector<std::int32_t> kept = batch.answer_rows;
  for (const ScoredToken& scored : batch.scored_tokens) kept.push_back(scored.row);
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::byte* hidden_rows = memory->hidden.data();
  ActivationRows& normed = memory->normed;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto row = static_cast<std::size_t>(ActiveIndex(kept[i]));
    if (row == i) continue;
    std::memcpy(hidden_rows + i * hidden_bytes_, hidden_rows + row * hidden_bytes_, hidden_bytes_);
    std::memcpy(normed.values.data() + i * normed_bytes_,
                normed.values.data() + row * normed_bytes_, normed_bytes_);
    if (!normed.codes.empty()) normed.codes[i] = normed.codes[row];
  }
  active_rows = std::move(kept);
  Plan();
}

}  // namespace quail::infer::cpu
