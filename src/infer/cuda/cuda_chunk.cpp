#include "infer/cuda/cuda_chunk.h"

#include <algorithm>
#include <utility>

namespace quail::infer::cuda {
namespace {

/// The rows whose hidden state the last layer keeps, ascending, and where answers and scores find
/// theirs.
struct KeptRows {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> answer_index;
  std::vector<std::int32_t> scored_index;
  std::vector<std::int32_t> scored_tokens;
};

KeptRows CollectKeptRows(const PrefillBatch& batch) {
  KeptRows kept;
  kept.rows = batch.answer_rows;
  for (const ScoredToken& scored : batch.scored_tokens) kept.rows.push_back(scored.row);
  std::sort(kept.rows.begin(), kept.rows.end());
  kept.rows.erase(std::unique(kept.rows.begin(), kept.rows.end()), kept.rows.end());
  const auto index_of = [&](std::int32_t row) {
    const auto found = std::lower_bound(kept.rows.begin(), kept.rows.end(), row);
    return static_cast<std::int32_t>(found - kept.rows.begin());
  };
  for (const std::int32_t row : kept.rows) {
    kept.positions.push_back(batch.positions[static_cast<std::size_t>(row)]);
  }
  for (const std::int32_t row : batch.answer_rows) kept.answer_index.push_back(index_of(row));
  for (const ScoredToken& scored : batch.scored_tokens) {
    kept.scored_index.push_back(index_of(scored.row));
    kept.scored_tokens.push_back(scored.token);
  }
  return kept;
}

WorkOffsets AddWork(const AttentionWork& work, DescriptorArena& arena) {
  return {arena.Add(std::span(work.rows)), arena.Add(std::span(work.tiles)),
          arena.Add(std::span(work.segments)), static_cast<std::int32_t>(work.tiles.size())};
}

}  // namespace

void DescriptorArena::Upload(cudaStream_t stream) {
  if (host_.size() > device_.size()) {
    const std::size_t room = host_.size() * 3 / 2;
    device_ = DeviceBuffer(room, "chunk descriptors");
    pinned_ = PinnedBuffer(room, "chunk descriptors");
  }
  if (host_.empty()) return;
  std::memcpy(pinned_.data(), host_.data(), host_.size());
  CheckCuda(
      cudaMemcpyAsync(device_.data(), pinned_.data(), host_.size(), cudaMemcpyHostToDevice, stream),
      "descriptor copy");
}

void CudaChunk::Describe(const PrefillBatch& batch, std::int32_t tile_tokens) {
  const KeptRows collected = CollectKeptRows(batch);
  DescriptorArena& arena = slot.arena;
  const auto add = [&](const auto& values) { return arena.Add(std::span(std::as_const(values))); };
  rows = batch.rows();
  kept = static_cast<std::int32_t>(collected.rows.size());
  answers = static_cast<std::int32_t>(batch.answer_rows.size());
  scored = static_cast<std::int32_t>(batch.scored_tokens.size());
  tokens = add(batch.tokens);
  positions = add(batch.positions);
  kv_slots = add(batch.kv_slots);
  kept_rows = add(collected.rows);
  kept_positions = add(collected.positions);
  answer_index = add(collected.answer_index);
  scored_index = add(collected.scored_index);
  scored_tokens = add(collected.scored_tokens);
  BuildAttentionWork(batch, {}, tile_tokens, slot.all_work);
  all_work = AddWork(slot.all_work, arena);
  slot.kept_work.Clear();
  if (kept > 0) BuildAttentionWork(batch, collected.rows, tile_tokens, slot.kept_work);
  kept_work = AddWork(slot.kept_work, arena);
}

void CudaChunk::ReserveResults() {
  const std::size_t bytes =
      (static_cast<std::size_t>(scored) + static_cast<std::size_t>(answers) * kMaxAnswerColumns) *
      sizeof(float);
  if (bytes <= slot.results.size()) return;
  slot.results = PinnedBuffer(bytes * 2, "answers");
  slot.device_results = DeviceBuffer(bytes * 2, "answers");
}

}  // namespace quail::infer::cuda
