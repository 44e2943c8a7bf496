#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/prefill_batch.h"
#include "infer/prompt_forest.h"
#include "infer/scheduler.h"

namespace quail::infer {

/// An ask whose last row is in a chunk.
struct PackedAsk {
  SourceId source;
  std::uint64_t index = 0;
  std::uint64_t serial = 0;  ///< of a leaf scored over several chunks, else 0
  std::uint32_t path_tokens = 0;
  std::uint32_t group = kNoGroup;
  std::int32_t row =
      0;  ///< its last row; from Close on, for margins, its index among the answer rows
  ReadoutKind readout = ReadoutKind::kTrueFalseMargin;
};

/// Whose log-probability a scored token adds to.
struct PackedScore {
  ScoredToken token;
  std::uint32_t ask = 0;  ///< index in the chunk's asks, unless `serial`
  std::uint64_t serial = 0;
};

/// A chunk's asks and the order of its answers.
struct PackedChunk {
  std::vector<PackedAsk> asks;
  std::vector<PackedScore> scores;  ///< as PrefillBatch::scored_tokens
  std::int32_t rows = 0;
  std::int32_t answer_rows = 0;
};

/// Fills chunks with the fresh tokens of what the scheduler serves next, and says where their KV
/// goes. A chunk can be filled in several calls until it is closed.
class Packer {
 public:
  Packer(ForestParts& parts, Scheduler& scheduler, ForestCounters& counters);

  void Fill();
  bool full() const { return full_; }
  bool empty() const { return batch_.rows() == 0; }
  std::uint64_t asks() const { return chunk_.asks.size(); }
  /// Places the KV of what is still wanted, and hands the chunk over: `batch()` is valid until the
  /// next Fill.
  PackedChunk Close();
  const PrefillBatch& batch() const { return batch_; }
  /// Empties the batch for the next chunk.
  void Clear();

 private:
  std::int32_t room() const { return parts_.config.chunk_tokens - batch_.rows(); }

  void PackSource(std::uint32_t slot);
  /// Makes the KV of all nodes of `path_` available and leaves their spans in `spans_`; false when
  /// the chunk is full.
  bool Admit(const Source& source);
  bool FitsArena();
  void PackTarget(std::uint32_t slot);
  void ScoreTarget(SourceWindow& window);
  /// The leaves [lo, hi) of the window, which agree in the first `depth` tokens; `base` of them are
  /// in `spans_`.
  struct Range {
    std::uint32_t lo = 0, hi = 0, base = 0, depth = 0;
  };
  bool PackLeaves(std::uint32_t slot, const Range& range);
  bool PackLeaf(std::uint32_t slot, std::uint32_t base);
  bool PackHead(std::uint32_t slot, const Range& group, std::uint32_t common);
  void AddAsk(std::uint32_t slot, std::int32_t last_row);

  void AppendSpan(const KeySpan& span);
  void AppendStored(const KvState& node);
  /// Rows for `tokens`, which follow all of `spans_`; returns the first. Extends the last run where
  /// they continue it.
  std::int32_t Emit(std::span<const TokenId> tokens, const Source& source);
  bool ContinuesLastRun() const;
  void AppendRows(std::span<const TokenId> tokens);

  void PlaceWanted();
  void PlacePossible();
  /// Places what nobody is known to want where nothing wanted has to go for it.
  void PlaceForLater();
  /// Places what is fresh on the path to `id`, in place of less valuable KV.
  void PlacePath(KvId id);
  void Place(KvId id);
  void OrderAnswerRows();
  void OrderScores();

  ForestParts& parts_;
  Scheduler& scheduler_;
  ForestCounters& counters_;
  PrefillBatch batch_;
  PackedChunk chunk_;
  bool full_ = false;
  std::vector<KvId> path_;
  std::vector<KeySpan> spans_;
  std::uint32_t span_tokens_ = 0;    ///< keys in `spans_`: the position that follows them
  std::int32_t written_first_ = -1;  ///< where `spans_` lie in the batch, or -1
  std::vector<std::int32_t>
      score_rows_;                       ///< rows of the packed leaf's tokens, for label likelihood
  std::vector<std::int32_t> ascending_;  ///< 0, 1, 2 ..: positions are copied, not counted out
  std::vector<KvId> candidates_;
};

}  // namespace quail::infer
