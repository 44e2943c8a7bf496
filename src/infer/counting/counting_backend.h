#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "infer/backend.h"
#include "infer/model.h"

namespace quail::infer {

/// Hash of a path's tokens, one after the other. Never 0.
std::uint64_t ExtendPathHash(std::uint64_t path, std::int32_t token);
std::uint64_t PathHash(std::span<const base::TokenId> tokens);
/// Answers that the counting backend gives unless it is told others: functions of the path, with
/// both signs.
float CountingMargin(std::uint64_t path);
/// Log-probability of `token` after `path`, in (-8, 0).
float CountingLogProb(std::uint64_t path, std::int32_t token);

struct CountingOptions {
  std::int32_t answer_rows = 2;
  std::int32_t kv_alignment = 1;
  std::int32_t preferred_chunk_tokens = 4096;
  std::int32_t max_chunk_tokens = 1 << 20;
  std::int64_t kv_bytes_per_token = 0;
  /// Follows what every KV slot holds and checks that each run reads exactly its path: `fault` says
  /// the first error. Costs time in proportion to the attention spans.
  bool validate = false;
  /// Margin of the ask whose path has this hash (with `validate`), else of a hash of its last token
  /// and position.
  std::function<float(std::uint64_t)> margin = CountingMargin;
  /// Wait of this chunk (0-based) throws Error{kDevice}.
  std::optional<std::uint64_t> failing_chunk = std::nullopt;
};

/// A backend without arithmetic: scheduling, packing and KV placement are real, answers are
/// planted. What a suite costs in tokens, chunks and evictions is counted with it in seconds.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(CountingOptions options);
  ~CountingBackend() override;

  /// The first thing that was wrong in any batch, empty if nothing.
  const std::string& fault() const { return fault_; }
  std::uint64_t chunks() const { return chunks_; }
  /// Rows whose K and V went to the arena.
  std::uint64_t kv_writes() const { return kv_writes_; }
  /// How often, with `validate`, a run had the arena spans of an earlier one of its chunk but
  /// others stood in between.
  std::uint64_t scattered_runs() const { return scattered_runs_; }

  const BackendInfo& info() const override { return info_; }
  void Configure(const BackendModel& model) override;
  WeightId LoadLinear(std::span<const std::shared_ptr<const WeightTensor>> parts) override;
  WeightId LoadEmbedding(const WeightTensor& table) override;
  WeightId LoadRows(const WeightTensor& matrix, std::span<const std::int32_t> rows) override;
  WeightId LoadVector(std::span<const std::shared_ptr<const WeightTensor>> parts) override;
  void ReserveKv(const KvShape& shape, std::int64_t tokens) override;

  std::unique_ptr<Chunk> Begin(const PrefillBatch& batch) override;
  void Embed(Chunk&, WeightId, WeightId) override {}
  void Qkv(Chunk&, const QkvWeights&, std::int32_t, bool) override {}
  void Attention(Chunk&, std::int32_t) override {}
  void AttentionOutput(Chunk&, WeightId, WeightId) override {}
  void GateUp(Chunk&, WeightId) override {}
  void Down(Chunk&, WeightId, WeightId) override {}
  void AnswerLogits(Chunk&, WeightId) override {}
  void LogProbs(Chunk&, WeightId, std::int32_t) override {}
  void Finish(Chunk&) override {}
  ChunkResult Wait(Chunk& chunk) override;

  void CopyKvOut(std::int64_t, std::int64_t, std::span<std::byte>) override {}
  void CopyKvIn(std::int64_t, std::int64_t, std::span<const std::byte>) override {}

 private:
  struct Slot {
    std::uint64_t path = 0;  ///< hash of the path up to the position held here; 0: never written
    std::int32_t position = 0;
    std::uint32_t written_by = 0;  ///< chunk, counted from 1
  };

  void Fault(const std::string& what);
  void CheckShape(const PrefillBatch& batch);
  void CheckReadouts(const PrefillBatch& batch);
  void MarkWrites(const PrefillBatch& batch);
  /// Path hash of every row, checking all that the runs read.
  void FollowPaths(const PrefillBatch& batch, std::vector<std::uint64_t>& paths);
  std::uint64_t FollowSpans(const PrefillBatch& batch, const Run& run,
                            const std::vector<std::uint64_t>& paths);
  void CountScattered(const PrefillBatch& batch);
  void HashRows(const PrefillBatch& batch, std::vector<std::uint64_t>& paths) const;

  CountingOptions options_;
  BackendInfo info_;
  std::string fault_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> paths_;
  std::uint64_t chunks_ = 0;
  std::uint64_t kv_writes_ = 0;
  std::uint64_t scattered_runs_ = 0;
  std::uint32_t weights_ = 0;
};

/// A model that only begins and finishes chunks, for forests over the counting backend.
class CountingModel final : public Model {
 public:
  explicit CountingModel(spec::ModelSpec spec) : spec_(std::move(spec)) {}
  const spec::ModelSpec& spec() const override { return spec_; }
  bool Forward(Backend& backend, Chunk& chunk, const PrefillBatch& batch,
               const base::CancelFlag* cancel) const override;

 private:
  spec::ModelSpec spec_;
};

}  // namespace quail::infer
