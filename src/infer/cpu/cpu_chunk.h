#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "infer/backend.h"
#include "infer/cpu/cpu_attention.h"
#include "infer/cpu/cpu_linear.h"
#include "infer/cpu/cpu_memory.h"
#include "infer/prefill_batch.h"
#include "spec/model_spec.h"

namespace quail::infer::cpu {

/// A forward pass under way.
class CpuChunk final : public Chunk {
 public:
  /// Takes memory for all rows of `batch`; its attention is cut for `threads`. Throws
  /// Error{kOutOfMemory}.
  CpuChunk(const PrefillBatch& batch_in, const spec::ModelSpec& spec, const LinearEngine& engine,
           std::size_t threads, ReusePool<ChunkMemory>::Loan loan);

  std::int64_t rows() const { return static_cast<std::int64_t>(active_rows.size()); }
  /// Index of a batch row among the active ones.
  std::int64_t ActiveIndex(std::int32_t row) const;
  /// Moves the hidden state of answer and scored rows to the front; the other rows are no longer
  /// active.
  void KeepAnswerRows();

  PrefillBatch batch;
  ReusePool<ChunkMemory>::Loan memory;
  std::int64_t row_room = 0;              ///< R, rows that the buffers hold
  std::vector<std::int32_t> active_rows;  ///< rows of the hidden state, as rows of the batch
  AttentionPlan plan;                     ///< of the active rows
  const float* norm = nullptr;            ///< weight of the norm that `normed` went through
  std::vector<float> answer_logits;
  std::vector<float> log_probs;
  bool finished = false;

 private:
  void Reserve(const spec::ModelSpec& spec, const LinearEngine& engine);
  void Plan();

  std::size_t hidden_bytes_;  ///< of a row of the hidden state
  std::size_t normed_bytes_;
  std::int32_t tile_queries_;
};

}  // namespace quail::infer::cpu
