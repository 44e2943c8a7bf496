#pragma once

#include <cstdint>
#include <vector>

namespace quail::infer {

/// Keys that a run attends to before its own: `length` consecutive positions, all visible to every
/// row of the run.
struct KeySpan {
  enum class Place : std::uint8_t {
    kArena,  ///< slots [first, first + length) of the KV arena
    kChunk,  ///< rows [first, first + length) of this same chunk
  };
  std::int64_t first = 0;
  std::int32_t length = 0;
  Place place = Place::kArena;
};

/// Consecutive fresh tokens of one path. Row i of the run attends to all the run's spans and,
/// causally, to the rows [0, i] of the run itself.
struct Run {
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  // Runs may share spans: asks over one anchor have the same first_span.
  std::int32_t first_span =
      0;  ///< spans [first_span, first_span + span_count) of PrefillBatch::spans
  std::int32_t span_count = 0;
};

/// A row whose log-probability of `token` is read (label likelihood).
struct ScoredToken {
  std::int32_t row = 0;
  std::int32_t token = 0;
};

/// One forward pass over T fresh tokens of many paths: plain data, made by the packer, understood
/// by every backend. Runs cover the rows [0, T) in order; runs with equal arena spans are adjacent,
/// so that an attention tile can serve several of them. A kChunk span refers to rows before the
/// run's first.
struct PrefillBatch {
  std::vector<std::int32_t> tokens;     ///< [T]
  std::vector<std::int32_t> positions;  ///< [T], 0-based position in the path
  std::vector<std::int64_t> kv_slots;   ///< [T], arena slot that receives the row's K and V, or -1
  std::vector<Run> runs;
  std::vector<KeySpan> spans;
  std::vector<std::int32_t> answer_rows;   ///< [A], ascending: rows read by the answer head
  std::vector<ScoredToken> scored_tokens;  ///< [S], ascending by row

  std::int32_t rows() const { return static_cast<std::int32_t>(tokens.size()); }
  void Clear();
};

}  // namespace quail::infer
