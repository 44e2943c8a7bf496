#include "infer/cuda/attention_work.h"

#include <algorithm>

#include "base/check.h"

namespace quail::infer::cuda {
namespace {

/// The query rows of one run: rows [first, first + count) of AttentionWork::rows.
struct RunRows {
  std::int32_t run = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
};

bool SameSpan(const KeySpan& a, const KeySpan& b) {
  return a.first == b.first && a.length == b.length && a.place == b.place;
}

class WorkBuilder {
 public:
  WorkBuilder(const PrefillBatch& batch, std::int32_t tile_rows, AttentionWork& work)
      : batch_(batch), tile_rows_(tile_rows), work_(work) {}

  void Build(std::span<const std::int32_t> kept_rows) {
    work_.Clear();
    if (kept_rows.empty()) {
      ListAllRows();
    } else {
      ListKeptRows(kept_rows);
    }
    for (std::size_t i = 0; i < runs_.size();) i = AddTilesFrom(i);
    SortByKeys();
  }

 private:
  void ListAllRows() {
    for (std::size_t r = 0; r < batch_.runs.size(); ++r) {
      const Run& run = batch_.runs[r];
      if (run.rows == 0) continue;
      runs_.push_back({static_cast<std::int32_t>(r), Count(), run.rows});
      for (std::int32_t i = 0; i < run.rows; ++i) {
        work_.rows.push_back({run.first_row + i, run.first_row});
      }
    }
  }

  void ListKeptRows(std::span<const std::int32_t> kept_rows) {
    std::size_t r = 0;
    for (const std::int32_t row : kept_rows) {
      while (row >= batch_.runs[r].first_row + batch_.runs[r].rows) {
        ++r;
        QUAIL_CHECK(r < batch_.runs.size());
      }
      const auto run = static_cast<std::int32_t>(r);
      if (runs_.empty() || runs_.back().run != run) runs_.push_back({run, Count(), 0});
      ++runs_.back().count;
      work_.rows.push_back({row, batch_.runs[r].first_row});
    }
  }

  std::int32_t Count() const { return static_cast<std::int32_t>(work_.rows.size()); }

  std::span<const KeySpan> SpansOf(std::size_t i) const {
    const Run& run = batch_.runs[static_cast<std::size_t>(runs_[i].run)];
    return std::span(batch_.spans)
        .subspan(static_cast<std::size_t>(run.first_span),
                 static_cast<std::size_t>(run.span_count));
  }

  /// Arena spans come first in a run's list (ancestors precede what is fresh), so a prefix
  /// comparison is enough.
  bool ShareArenaSpans(std::size_t i, std::size_t j) const {
    const auto a = SpansOf(i);
    const auto b = SpansOf(j);
    for (std::size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
      const bool arena_a = k < a.size() && a[k].place == KeySpan::Place::kArena;
      const bool arena_b = k < b.size() && b[k].place == KeySpan::Place::kArena;
      if (!arena_a && !arena_b) return true;
      if (arena_a != arena_b || !SameSpan(a[k], b[k])) return false;
    }
    return true;
  }

  /// Packs run i and the following ones that may share its tiles; returns the first run not packed.
  /// Short runs fill tiles without regard to where one ends: a tile then holds the end of one and
  /// the beginning of another.
  std::size_t AddTilesFrom(std::size_t i) {
    std::size_t end = i + 1;
    std::int32_t rows = runs_[i].count;
    if (rows < tile_rows_) {
      while (end < runs_.size() && runs_[end].count < tile_rows_ && ShareArenaSpans(i, end)) {
        rows += runs_[end].count;
        ++end;
      }
    }
    std::size_t first = i;
    for (std::int32_t done = 0; done < rows; done += tile_rows_) {
      const std::int32_t first_row = runs_[i].first + done;
      const std::int32_t last_row = std::min(first_row + tile_rows_, runs_[i].first + rows);
      while (runs_[first].first + runs_[first].count <= first_row) ++first;
      std::size_t behind = first + 1;
      while (behind < end && runs_[behind].first < last_row) ++behind;
      AddTile(first, behind, first_row, last_row - first_row);
    }
    return end;
  }

  /// A tile over `rows` rows from `first_row`, which belong to the runs [begin, end).
  void AddTile(std::size_t begin, std::size_t end, std::int32_t first_row, std::int32_t rows) {
    AttentionTile tile{first_row, rows, static_cast<std::int32_t>(work_.segments.size()), 0};
    for (const KeySpan& span : SpansOf(begin)) {
      if (span.place == KeySpan::Place::kArena)
        AddSegment({span.first, span.length, 0, rows, 0, 0});
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t row_begin = std::max(runs_[i].first - first_row, 0);
      const std::int32_t row_end = std::min(runs_[i].first + runs_[i].count - first_row, rows);
      for (const KeySpan& span : SpansOf(i)) {
        if (span.place == KeySpan::Place::kChunk) {
          AddChunkSegment(tile, {span.first, span.length, row_begin, row_end, 1, 0});
        }
      }
    }
    AddOwnSegments(begin, end, first_row, rows);
    tile.segments = static_cast<std::int32_t>(work_.segments.size()) - tile.first_segment;
    work_.tiles.push_back(tile);
  }

  void AddSegment(const KeySegment& segment) {
    if (segment.length > 0) work_.segments.push_back(segment);
  }

  /// Neighbouring runs under one parent in the chunk read it once.
  void AddChunkSegment(const AttentionTile& tile, const KeySegment& segment) {
    for (auto s = static_cast<std::size_t>(tile.first_segment); s < work_.segments.size(); ++s) {
      KeySegment& other = work_.segments[s];
      if (other.in_chunk == 1 && other.first == segment.first && other.length == segment.length &&
          other.row_end == segment.row_begin) {
        other.row_end = segment.row_end;
        return;
      }
    }
    AddSegment(segment);
  }

  /// The rows' own runs: one segment while the runs lie side by side in the chunk.
  void AddOwnSegments(std::size_t begin, std::size_t end, std::int32_t first_row,
                      std::int32_t rows) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::int32_t row_begin = std::max(runs_[i].first - first_row, 0);
      const std::int32_t row_end = std::min(runs_[i].first + runs_[i].count - first_row, rows);
      const std::int32_t first = batch_.runs[static_cast<std::size_t>(runs_[i].run)].first_row;
      const std::int32_t last = work_.rows[static_cast<std::size_t>(first_row + row_end - 1)].row;
      KeySegment* previous = i == begin ? nullptr : &work_.segments.back();
      if (previous != nullptr && previous->first + previous->length == first) {
        previous->length += last + 1 - first;
        previous->row_end = row_end;
      } else {
        AddSegment({first, last + 1 - first, row_begin, row_end, 1, 1});
      }
    }
  }

  void SortByKeys() {
    const auto keys = [this](const AttentionTile& tile) {
      std::int64_t total = 0;
      for (std::int32_t s = 0; s < tile.segments; ++s) {
        total += work_
                     .segments[static_cast<std::size_t>(tile.first_segment) +
                               static_cast<std::size_t>(s)]
                     .length;
      }
      return total;
    };
    std::stable_sort(
        work_.tiles.begin(), work_.tiles.end(),
        [&](const AttentionTile& a, const AttentionTile& b) { return keys(a) > keys(b); });
  }

  const PrefillBatch& batch_;
  const std::int32_t tile_rows_;
  AttentionWork& work_;
  std::vector<RunRows> runs_;
};

}  // namespace

void AttentionWork::Clear() {
  rows.clear();
  tiles.clear();
  segments.clear();
}

void BuildAttentionWork(const PrefillBatch& batch, std::span<const std::int32_t> kept_rows,
                        std::int32_t tile_rows, AttentionWork& work) {
  QUAIL_CHECK_GT(tile_rows, 0);
  WorkBuilder(batch, tile_rows, work).Build(kept_rows);
}

}  // namespace quail::infer::cuda
