#include "infer/cuda/attention_work.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "infer/cuda/gemm_select.h"

namespace quail::infer::cuda {
namespace {

/// (place, position) of a key; place 0 = arena, 1 = chunk.
using Key = std::pair<int, std::int64_t>;
/// Keys that each query row sees, each with how often.
using Visible = std::map<std::int32_t, std::multiset<Key>>;

PrefillBatch BatchOf(const std::vector<std::pair<std::int32_t, std::vector<KeySpan>>>& runs) {
  PrefillBatch batch;
  for (const auto& [rows, spans] : runs) {
    batch.runs.push_back({batch.rows(), rows, static_cast<std::int32_t>(batch.spans.size()),
                          static_cast<std::int32_t>(spans.size())});
    batch.spans.insert(batch.spans.end(), spans.begin(), spans.end());
    for (std::int32_t i = 0; i < rows; ++i) {
      batch.tokens.push_back(0);
      batch.positions.push_back(i);
      batch.kv_slots.push_back(-1);
    }
  }
  return batch;
}

Visible VisibleByDefinition(const PrefillBatch& batch) {
  Visible visible;
  for (const Run& run : batch.runs) {
    for (std::int32_t row = run.first_row; row < run.first_row + run.rows; ++row) {
      for (std::int32_t s = run.first_span; s < run.first_span + run.span_count; ++s) {
        const KeySpan& span = batch.spans[static_cast<std::size_t>(s)];
        for (std::int64_t k = 0; k < span.length; ++k) {
          visible[row].insert({span.place == KeySpan::Place::kChunk ? 1 : 0, span.first + k});
        }
      }
      for (std::int32_t k = run.first_row; k <= row; ++k) visible[row].insert({1, k});
    }
  }
  return visible;
}

/// What the kernel does with the work list, without arithmetic.
Visible VisibleByWork(const AttentionWork& work, std::int32_t tile_rows) {
  Visible visible;
  for (const AttentionTile& tile : work.tiles) {
    EXPECT_GT(tile.rows, 0);
    EXPECT_LE(tile.rows, tile_rows);
    for (std::int32_t s = tile.first_segment; s < tile.first_segment + tile.segments; ++s) {
      const KeySegment& segment = work.segments[static_cast<std::size_t>(s)];
      for (std::int32_t t = segment.row_begin; t < segment.row_end; ++t) {
        const QueryRow& query = work.rows[static_cast<std::size_t>(tile.first_row + t)];
        for (std::int64_t k = segment.first; k < segment.first + segment.length; ++k) {
          if (segment.own_run != 0 && (k < query.run_first || k > query.row)) continue;
          visible[query.row].insert({segment.in_chunk, k});
        }
      }
    }
  }
  return visible;
}

std::int64_t KeysRead(const AttentionWork& work) {
  std::int64_t keys = 0;
  for (const KeySegment& segment : work.segments) keys += segment.length;
  return keys;
}

TEST(AttentionWork, SuffixesOfOneAnchorShareItsKeys) {
  std::vector<std::pair<std::int32_t, std::vector<KeySpan>>> runs(
      8, {4, {{1000, 500, KeySpan::Place::kArena}}});
  const PrefillBatch batch = BatchOf(runs);
  AttentionWork work;
  BuildAttentionWork(batch, {}, 32, work);
  ASSERT_EQ(work.tiles.size(), 1U);
  EXPECT_EQ(KeysRead(work), 500 + 32);
  EXPECT_EQ(VisibleByWork(work, 32), VisibleByDefinition(batch));
}

TEST(AttentionWork, ShortRunsFillTilesAcrossTheirBorders) {
  std::vector<std::pair<std::int32_t, std::vector<KeySpan>>> runs(
      32, {9, {{0, 100, KeySpan::Place::kArena}}});
  const PrefillBatch batch = BatchOf(runs);
  AttentionWork work;
  BuildAttentionWork(batch, {}, 32, work);
  EXPECT_EQ(work.tiles.size(), 9U);
  EXPECT_EQ(VisibleByWork(work, 32), VisibleByDefinition(batch));
}

TEST(AttentionWork, OtherAnchorsDoNotShareATile) {
  const PrefillBatch batch = BatchOf({{4, {{0, 100, KeySpan::Place::kArena}}},
                                      {4, {{100, 100, KeySpan::Place::kArena}}},
                                      {4, {}}});
  AttentionWork work;
  BuildAttentionWork(batch, {}, 32, work);
  EXPECT_EQ(work.tiles.size(), 3U);
  EXPECT_EQ(VisibleByWork(work, 32), VisibleByDefinition(batch));
}

TEST(AttentionWork, QuestionsOfOneFreshDocumentReadItOnce) {
  const KeySpan document{0, 40, KeySpan::Place::kChunk};
  const PrefillBatch batch = BatchOf({{40, {}}, {5, {document}}, {6, {document}}});
  AttentionWork work;
  BuildAttentionWork(batch, {}, 32, work);
  ASSERT_EQ(work.tiles.size(), 3U);  // two of the document, one of both questions
  EXPECT_EQ(KeysRead(work), 32 + 40 + 40 + 11);
  EXPECT_EQ(VisibleByWork(work, 32), VisibleByDefinition(batch));
}

TEST(AttentionWork, DearestTilesComeFirst) {
  const PrefillBatch batch =
      BatchOf({{1, {{0, 10, KeySpan::Place::kArena}}}, {1, {{10, 900, KeySpan::Place::kArena}}}});
  AttentionWork work;
  BuildAttentionWork(batch, {}, 32, work);
  ASSERT_EQ(work.tiles.size(), 2U);
  EXPECT_EQ(work.tiles[0].first_row, 1);
}

/// Random runs: empty ones, ragged lengths around the tile, arena and chunk ancestors.
rc::Gen<PrefillBatch> RandomBatch() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::tuple<int, int, int>>>(
          rc::gen::tuple(rc::gen::element(0, 1, 2, 3, 7, 31, 32, 33, 65), rc::gen::inRange(0, 3),
                         rc::gen::inRange(0, 4))),
      [](const std::vector<std::tuple<int, int, int>>& choices) {
        std::vector<std::pair<std::int32_t, std::vector<KeySpan>>> runs;
        std::int32_t rows_before = 0;
        for (const auto& [rows, arena, chunk] : choices) {
          std::vector<KeySpan> spans;
          for (int i = 0; i < arena; ++i) spans.push_back({100 * i, 3 + i, KeySpan::Place::kArena});
          if (chunk > 0 && rows_before > 0) {
            spans.push_back({0, std::min(rows_before, chunk), KeySpan::Place::kChunk});
          }
          runs.emplace_back(rows, spans);
          rows_before += rows;
        }
        return BatchOf(runs);
      });
}

RC_GTEST_PROP(AttentionWork, EveryRowSeesEveryKeyOfItsPathOnce, ()) {
  const PrefillBatch batch = *RandomBatch();
  const auto tile_rows = *rc::gen::element<std::int32_t>(1, 2, 16, 32, 128);
  AttentionWork work;
  BuildAttentionWork(batch, {}, tile_rows, work);
  RC_ASSERT(VisibleByWork(work, tile_rows) == VisibleByDefinition(batch));
}

RC_GTEST_PROP(AttentionWork, KeptRowsSeeWhatTheySawAmongAllRows, ()) {
  const PrefillBatch batch = *RandomBatch();
  RC_PRE(batch.rows() > 0);
  std::vector<std::int32_t> kept;
  for (std::int32_t row = 0; row < batch.rows(); ++row) {
    if (*rc::gen::inRange(0, 3) == 0) kept.push_back(row);
  }
  RC_PRE(!kept.empty());
  const auto tile_rows = *rc::gen::element<std::int32_t>(1, 16, 32);
  AttentionWork work;
  BuildAttentionWork(batch, kept, tile_rows, work);
  Visible expected = VisibleByDefinition(batch);
  std::erase_if(expected, [&](const auto& entry) {
    return !std::binary_search(kept.begin(), kept.end(), entry.first);
  });
  RC_ASSERT(VisibleByWork(work, tile_rows) == expected);
  for (std::size_t i = 0; i < kept.size(); ++i) RC_ASSERT(work.rows[i].row == kept[i]);
}

TEST(GemmSelect, WidthsThatAreNoMultipleOf128AreNotSupported) {
  EXPECT_EQ(SelectFp8Gemm({1000, 576, 1536}), std::nullopt);
  EXPECT_EQ(SelectFp8Gemm({1000, 2560, 100}), std::nullopt);
  EXPECT_EQ(SelectFp8Gemm({0, 2560, 2560}), std::nullopt);
}

TEST(GemmSelect, LargeTilesOnlyForTwoWaves) {
  EXPECT_EQ(SelectFp8Gemm({32768, 2560, 9728}), Fp8Gemm::k256x128);
  EXPECT_EQ(SelectFp8Gemm({64, 2560, 9728}), Fp8Gemm::k128x128);
  EXPECT_EQ(GemmTiles({257, 256, 1}, 256, 128), 4);
}

}  // namespace
}  // namespace quail::infer::cuda
