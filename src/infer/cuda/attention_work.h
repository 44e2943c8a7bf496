#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/prefill_batch.h"

namespace quail::infer::cuda {

/// Keys that an attention tile reads one after another. Plain data, read by the kernel as it is.
struct KeySegment {
  std::int64_t first = 0;  ///< arena slot or chunk row of the first key
  std::int32_t length = 0;
  std::int32_t row_begin = 0;  ///< tile rows [row_begin, row_end) see these keys
  std::int32_t row_end = 0;
  std::int16_t in_chunk = 0;  ///< 0: arena, 1: chunk
  std::int16_t own_run = 0;   ///< 1: a row sees the keys from its run's first row to itself only
};

/// Consecutive query rows that one thread block serves for one KV head, with all keys they need.
struct AttentionTile {
  std::int32_t first_row = 0;  ///< index into AttentionWork::rows
  std::int32_t rows = 0;
  std::int32_t first_segment = 0;
  std::int32_t segments = 0;
};

/// A query row: its row in the chunk and the first row of its run.
struct QueryRow {
  std::int32_t row = 0;
  std::int32_t run_first = 0;
};

/// The work list of one attention launch: tiles with the most keys first, so that the tail is
/// short.
struct AttentionWork {
  std::vector<QueryRow> rows;
  std::vector<AttentionTile> tiles;
  std::vector<KeySegment> segments;

  void Clear();
};

/// Cuts the batch's query rows into tiles of at most `tile_rows`. Runs with equal arena spans share
/// tiles, so that a suffix of 10 tokens does not cost a whole tile; spans that neighbouring runs of
/// a tile share are read once. `kept_rows`: the rows that ask queries (the last layer), ascending;
/// empty = all rows. Pure; reuses `work`'s memory.
void BuildAttentionWork(const PrefillBatch& batch, std::span<const std::int32_t> kept_rows,
                        std::int32_t tile_rows, AttentionWork& work);

}  // namespace quail::infer::cuda
