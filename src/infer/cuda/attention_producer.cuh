#pragma once

#include "infer/cuda/attention_pipeline.cuh"

namespace quail::infer::cuda::wgmma {

/// Where a half piece's keys and values lie.
struct HalfSource {
  bool in_chunk;
  int first;  ///< chunk row or arena slot
};

/// Walks a tile's segments in halves.
class SegmentCursor {
 public:
  __device__ SegmentCursor(const KeySegment* segments, int count, const TileRows& tile)
      : segment_(segments),
        end_(segments + count),
        tile_(tile),
        single_run_(tile.rows[0].run_first == tile.rows[tile.count - 1].run_first) {}

  __device__ bool done() const { return segment_ == end_; }

  __device__ HalfPiece Next(HalfSource& source) {
    const KeySegment& segment = *segment_;
    HalfPiece half;
    half.first_key = static_cast<int>(segment.first) + offset_;
    half.keys = static_cast<std::uint8_t>(min(kHalf, segment.length - offset_));
    half.row_begin = static_cast<std::uint8_t>(segment.row_begin);
    half.row_end = static_cast<std::uint8_t>(segment.row_end);
    const bool own_run = segment.own_run != 0;
    const bool causal_whole =
        !own_run || (single_run_ && half.first_key + kHalf - 1 <= tile_.rows[0].row);
    const bool whole = half.keys == kHalf && segment.row_begin == 0 &&
                       segment.row_end >= tile_.count && causal_whole;
    if (own_run) half.flags |= HalfPiece::kOwnRun;
    if (whole) half.flags |= HalfPiece::kWhole;
    source = {segment.in_chunk != 0, half.first_key};
    offset_ += kHalf;
    if (offset_ >= segment.length) {
      ++segment_;
      offset_ = 0;
    }
    return half;
  }

 private:
  const KeySegment* segment_;
  const KeySegment* const end_;
  const TileRows& tile_;
  const bool single_run_;
  int offset_ = 0;
};

/// One warp that feeds the consumers: it describes tiles and pieces and starts the copies of
/// queries, keys and values. Its own loads of descriptors run ahead of the products by the ring's
/// depth, so that their latency is hidden.
template <int G>
class Producer {
 public:
  __device__ Producer(const AttentionArguments& a, const Maps& maps, SharedMemory& shared)
      : a_(a), maps_(maps), shared_(shared), lane_(static_cast<int>(threadIdx.x % 32)) {}

  __device__ void Serve(const AttentionTile& tile, int kv_head) {
    LoadQueries(tile, kv_head);
    __syncwarp();
    if (lane_ == 0) LoadPieces(tile, kv_head);
    __syncwarp();
  }

 private:
  using Stage = __nv_bfloat16[2][kKeys][kColumnBlock];

  __device__ void LoadQueries(const AttentionTile& tile, int kv_head) {
    constexpr int kTokens = kRows / G;
    static_assert(kTokens <= kMostTokens);
    // Every lane writes a part of the description, so every lane takes part in both barriers.
    shared_.queries_empty.Wait(queries_parity_ ^ 1);
    for (int i = lane_; i < tile.rows; i += 32) {
      shared_.tile.rows[i] = a_.rows[tile.first_row + i];
    }
    queries_parity_ ^= 1;
    if (lane_ != 0) {
      shared_.queries_full.Arrive();
      return;
    }
    shared_.tile.first_row = tile.first_row;
    shared_.tile.count = tile.rows;
    shared_.queries_full.ArriveExpecting(2 * kTokens * G * kColumnBlock * 2);
    const int first = a_.compact_queries ? tile.first_row : shared_.tile.rows[0].row;
    for (int block = 0; block < 2; ++block) {
      hopper::CopyBox(shared_.queries[block], &maps_.queries, &shared_.queries_full,
                      block * kColumnBlock, kv_head * G, first);
    }
  }

  __device__ void LoadPieces(const AttentionTile& tile, int kv_head) {
    SegmentCursor cursor(a_.segments + tile.first_segment, tile.segments, shared_.tile);
    while (!cursor.done()) {
      HalfSource sources[2];
      shared_.keys_empty[ring_.stage].Wait(ring_.parity ^ 1);
      DescribePiece(cursor, sources);
      shared_.keys_full[ring_.stage].ArriveExpecting(kTileBytes);
      Load(sources, kv_head, maps_.arena_k, maps_.chunk_k, shared_.keys[ring_.stage],
           shared_.keys_full[ring_.stage]);
      shared_.values_empty[ring_.stage].Wait(ring_.parity ^ 1);
      shared_.values_full[ring_.stage].ArriveExpecting(kTileBytes);
      Load(sources, kv_head, maps_.arena_v, maps_.chunk_v, shared_.values[ring_.stage],
           shared_.values_full[ring_.stage]);
      ring_.Advance();
    }
  }

  __device__ void DescribePiece(SegmentCursor& cursor, HalfSource (&sources)[2]) {
    Piece piece;
    piece.halves[0] = cursor.Next(sources[0]);
    if (cursor.done()) {
      // A missing half repeats the first one's loads; its columns are masked.
      piece.halves[1] = {};
      sources[1] = sources[0];
    } else {
      piece.halves[1] = cursor.Next(sources[1]);
    }
    if (cursor.done()) piece.halves[1].flags |= HalfPiece::kLast;
    shared_.pieces[ring_.stage] = piece;
  }

  __device__ static void Load(const HalfSource (&sources)[2], int kv_head, const CUtensorMap& arena,
                              const CUtensorMap& chunk, Stage& to, hopper::Barrier& full) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const CUtensorMap* map = sources[h].in_chunk ? &chunk : &arena;
      for (int block = 0; block < 2; ++block) {
        hopper::CopyBox(to[block][h * kHalf], map, &full, block * kColumnBlock, kv_head,
                        sources[h].first);
      }
    }
  }

  const AttentionArguments& a_;
  const Maps& maps_;
  SharedMemory& shared_;
  const int lane_;
  RingPosition ring_;
  unsigned queries_parity_ = 0;
};

}  // namespace quail::infer::cuda::wgmma
