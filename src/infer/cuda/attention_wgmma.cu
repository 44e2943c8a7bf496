#include <cute/arch/mma_sm90_gmma.hpp>
#include <utility>

#include "base/check.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/hopper.cuh"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"
#include "infer/cuda/tensor_map.h"

/// Attention for heads of size 128 on Hopper's tensor cores: the same one-pass online softmax over
/// key segments as attention.cu, in the form of FlashAttention-3 (Shah et al., arXiv 2407.08608,
/// sections 3.1 and 3.2). A persistent block serves one (tile, KV head) after another: a producer
/// warp feeds queries, keys and values through the copy engine; two consumer warpgroups hold 64
/// query rows each, start the next scores before they soften the present ones, and take turns at
/// the tensor cores. Query rows are (token, head of the group) pairs, 128 a tile. Keys come in
/// pieces of two halves of 64, each from any segment, so that the end of an anchor and a suffix's
/// own keys share a piece. Grid: one block an SM; 384 threads; 224 KB of shared memory (queries 32,
/// three stages of keys and values 64 each). FLOPs: 4 * 128 * 128 a key; bytes from L2: 512 a key
/// and block.
namespace quail::infer::cuda {
namespace {

constexpr int D = 128;
constexpr int kRows = 128;
constexpr int kHalf = 64;
constexpr int kKeys = 2 * kHalf;
constexpr int kStages = 3;
constexpr int kConsumers = 2;
constexpr int kThreads = 128 * (1 + kConsumers);
constexpr int kColumnBlock = 64;  ///< bf16 elements of one swizzled 128-byte row
constexpr unsigned kTileBytes = kKeys * D * 2;

static_assert(kRows == 64 * kConsumers);

struct SharedMemory {
  __nv_bfloat16 queries[2][kRows][kColumnBlock];  ///< [column block][row][64]
  __nv_bfloat16 keys[kStages][2][kKeys][kColumnBlock];
  __nv_bfloat16 values[kStages][2][kKeys][kColumnBlock];
  hopper::Barrier queries_full;
  hopper::Barrier queries_empty;
  hopper::Barrier keys_full[kStages];
  hopper::Barrier keys_empty[kStages];
  hopper::Barrier values_full[kStages];
  hopper::Barrier values_empty[kStages];
};
constexpr std::size_t kSharedBytes =
    sizeof(SharedMemory) + 1024;  // aligned by hand to the swizzle's 1024 bytes

struct Maps {
  CUtensorMap queries;
  CUtensorMap chunk_k, chunk_v;
  CUtensorMap arena_k, arena_v;
};

/// Up to 64 keys of one segment. `keys` 0: nothing, everything masked.
struct HalfPiece {
  const KeySegment* segment = nullptr;
  int offset = 0;
  int keys = 0;
};

struct Piece {
  HalfPiece halves[2];
};

/// Walks a tile's segments in halves; producer and consumers see the same pieces.
class PieceCursor {
 public:
  __device__ PieceCursor(const AttentionArguments& a, const AttentionTile& tile)
      : segment_(a.segments + tile.first_segment), end_(segment_ + tile.segments) {}

  __device__ bool done() const { return segment_ == end_; }

  __device__ Piece Next() {
    Piece piece;
    piece.halves[0] = NextHalf();
    // A missing half repeats the first one's loads; its columns are masked.
    piece.halves[1] =
        done() ? HalfPiece{piece.halves[0].segment, piece.halves[0].offset, 0} : NextHalf();
    return piece;
  }

 private:
  __device__ HalfPiece NextHalf() {
    const HalfPiece half{segment_, offset_, min(kHalf, segment_->length - offset_)};
    offset_ += kHalf;
    if (offset_ >= segment_->length) {
      ++segment_;
      offset_ = 0;
    }
    return half;
  }

  const KeySegment* segment_;
  const KeySegment* end_;
  int offset_ = 0;
};

/// Position in a ring of kStages buffers, with the parity of the phase.
struct RingPosition {
  int stage = 0;
  unsigned parity = 0;

  __device__ void Advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

template <int G>
class Producer {
 public:
  __device__ Producer(const AttentionArguments& a, const Maps& maps, SharedMemory& shared)
      : a_(a), maps_(maps), shared_(shared) {}

  __device__ void Serve(const AttentionTile& tile, int kv_head) {
    LoadQueries(tile, kv_head);
    for (PieceCursor cursor(a_, tile); !cursor.done();) {
      const Piece piece = cursor.Next();
      shared_.keys_empty[ring_.stage].Wait(ring_.parity ^ 1);
      shared_.keys_full[ring_.stage].ArriveExpecting(kTileBytes);
      Load(piece, kv_head, maps_.arena_k, maps_.chunk_k, shared_.keys[ring_.stage],
           shared_.keys_full[ring_.stage]);
      shared_.values_empty[ring_.stage].Wait(ring_.parity ^ 1);
      shared_.values_full[ring_.stage].ArriveExpecting(kTileBytes);
      Load(piece, kv_head, maps_.arena_v, maps_.chunk_v, shared_.values[ring_.stage],
           shared_.values_full[ring_.stage]);
      ring_.Advance();
    }
  }

 private:
  __device__ void LoadQueries(const AttentionTile& tile, int kv_head) {
    constexpr int kTokens = kRows / G;
    shared_.queries_empty.Wait(queries_parity_ ^ 1);
    shared_.queries_full.ArriveExpecting(2 * kTokens * G * kColumnBlock * 2);
    const int first = a_.compact_queries ? tile.first_row : a_.rows[tile.first_row].row;
    for (int block = 0; block < 2; ++block) {
      hopper::CopyBox(shared_.queries[block], &maps_.queries, &shared_.queries_full,
                      block * kColumnBlock, kv_head * G, first);
    }
    queries_parity_ ^= 1;
  }

  __device__ static void Load(const Piece& piece, int kv_head, const CUtensorMap& arena,
                              const CUtensorMap& chunk, __nv_bfloat16 (&to)[2][kKeys][kColumnBlock],
                              hopper::Barrier& full) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const KeySegment& segment = *piece.halves[h].segment;
      const int first = static_cast<int>(segment.first) + piece.halves[h].offset;
      const CUtensorMap* map = segment.in_chunk != 0 ? &chunk : &arena;
      for (int block = 0; block < 2; ++block) {
        hopper::CopyBox(to[block][h * kHalf], map, &full, block * kColumnBlock, kv_head, first);
      }
    }
  }

  const AttentionArguments& a_;
  const Maps& maps_;
  SharedMemory& shared_;
  RingPosition ring_;
  unsigned queries_parity_ = 0;
};

template <std::size_t... I>
__device__ inline void ScoresProduct(const unsigned (&a)[4], std::uint64_t b, float (&d)[64],
                                     bool accumulate, std::index_sequence<I...>) {
  using namespace cute::SM90::GMMA;
  MMA_64x128x16_F32BF16BF16_RS<Major::K, Major::K>::fma(
      a[0], a[1], a[2], a[3], b, d[I]..., accumulate ? ScaleOut::One : ScaleOut::Zero);
}

template <std::size_t... I>
__device__ inline void ValuesProduct(const unsigned (&a)[4], std::uint64_t b, float (&d)[64],
                                     std::index_sequence<I...>) {
  using namespace cute::SM90::GMMA;
  MMA_64x128x16_F32BF16BF16_RS<Major::K, Major::MN>::fma(a[0], a[1], a[2], a[3], b, d[I]...,
                                                         ScaleOut::One);
}

/// The hardware's exponential; a result below the normal range is 0.
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// One of a thread's two query rows.
struct RowState {
  int token = 0;  ///< row of the tile
  int row = 0;    ///< row of the chunk
  int run_first = 0;
  float top = 0;
  float sum = 0;
};

template <int G>
class Consumer {
 public:
  static constexpr int kTokens = kRows / G;

  __device__ Consumer(const AttentionArguments& a, SharedMemory& shared, int group)
      : a_(a),
        shared_(shared),
        group_(group),
        warp_(static_cast<int>(threadIdx.x % 128 / 32)),
        lane_(static_cast<int>(threadIdx.x % 32)) {}

  __device__ void Serve(const AttentionTile& tile, int kv_head) {
    tile_ = &tile;
    InitRows();
    ReadQueries();
    PieceCursor cursor(a_, tile);
    if (!cursor.done()) Attend(cursor);
    Finish(kv_head);
  }

 private:
  using All = std::make_index_sequence<64>;

  __device__ void InitRows() {
    const int last = tile_->first_row + tile_->rows - 1;
    single_run_ = a_.rows[tile_->first_row].run_first == a_.rows[last].run_first;
    first_query_row_ = a_.rows[tile_->first_row].row;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      state.token = (group_ * 64 + warp_ * 16 + lane_ / 4 + half * 8) / G;
      const int listed = tile_->first_row + min(state.token, tile_->rows - 1);
      state.row = a_.rows[listed].row;
      state.run_first = a_.rows[listed].run_first;
      state.top = -INFINITY;
      state.sum = 0;
    }
#pragma unroll
    for (int i = 0; i < 64; ++i) output_[i] = 0;
  }

  __device__ void ReadQueries() {
    shared_.queries_full.Wait(queries_parity_);
    queries_parity_ ^= 1;
    const int row = group_ * 64 + warp_ * 16 + (lane_ & 15);
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      const int piece = (k % 4 * 2 + (lane_ >> 4)) ^ (row & 7);  // undoes the 128-byte swizzle
      const unsigned from = hopper::SharedAddress(&shared_.queries[k / 4][row][piece * kPiece]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                   : "=r"(q_[k][0]), "=r"(q_[k][1]), "=r"(q_[k][2]), "=r"(q_[k][3])
                   : "r"(from)
                   : "memory");
    }
    __syncwarp();
    if (lane_ == 0) shared_.queries_empty.Arrive();
  }

  __device__ void Attend(PieceCursor& cursor) {
    float scores[64];
    unsigned weights[kKeys / 16][4];
    Piece piece = cursor.Next();
    RingPosition values_at = ring_;
    StartScores(scores);
    TurnOver();
    hopper::WaitProducts<0>();
    hopper::PinRegisters(scores);
    ReleaseKeys();
    Soften(piece, scores);
    PackWeights(scores, weights);
    while (!cursor.done()) {
      piece = cursor.Next();
      StartScores(scores);
      StartValues(weights, values_at);
      TurnOver();
      hopper::WaitProducts<1>();
      hopper::PinRegisters(scores);
      ReleaseKeys();
      const Corrections corrections = Soften(piece, scores);
      hopper::WaitProducts<0>();
      hopper::PinRegisters(output_);
      ReleaseValues(values_at);
      Correct(corrections);
      PackWeights(scores, weights);
    }
    StartValues(weights, values_at);
    hopper::WaitProducts<0>();
    hopper::PinRegisters(output_);
    ReleaseValues(values_at);
  }

  /// Waits for the keys and this group's turn, and starts scores = queries * keys.
  __device__ void StartScores(float (&scores)[64]) {
    shared_.keys_full[ring_.stage].Wait(ring_.parity);
    hopper::NamedWait(1 + group_, 256);
    hopper::PinRegisters(scores);
    hopper::FenceRegisters();
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      const int block = k / 4;
      const int column = k % 4 * 16;
      const std::uint64_t b =
          hopper::Descriptor(&shared_.keys[ring_.stage][block][0][column], 16, 1024);
      ScoresProduct(q_[k], b, scores, k > 0, All{});
    }
    hopper::CommitProducts();
  }

  /// Starts output += weights * values.
  __device__ void StartValues(const unsigned (&weights)[kKeys / 16][4], const RingPosition& at) {
    shared_.values_full[at.stage].Wait(at.parity);
    hopper::PinRegisters(output_);
    hopper::FenceRegisters();
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      const std::uint64_t b = hopper::Descriptor(&shared_.values[at.stage][0][k * 16][0],
                                                 kKeys * kColumnBlock * 2, 1024);
      ValuesProduct(weights[k], b, output_, All{});
    }
    hopper::CommitProducts();
  }

  /// The other warpgroup may start its products.
  __device__ void TurnOver() const { hopper::NamedArrive(1 + (group_ + 1) % kConsumers, 256); }

  __device__ void ReleaseKeys() {
    if (lane_ == 0) shared_.keys_empty[ring_.stage].Arrive();
    ring_.Advance();
  }

  __device__ void ReleaseValues(RingPosition& at) {
    if (lane_ == 0) shared_.values_empty[at.stage].Arrive();
    at.Advance();
  }

  __device__ void MaskHalf(const HalfPiece& half, int h, float (&scores)[64]) const {
    const KeySegment& segment = *half.segment;
    const bool all_rows = segment.row_begin == 0 && segment.row_end >= tile_->rows;
    const int first_key = static_cast<int>(segment.first) + half.offset;
    const bool own_whole =
        segment.own_run == 0 || (single_run_ && first_key + kHalf - 1 <= first_query_row_);
    if (half.keys == kHalf && all_rows && own_whole) return;
#pragma unroll
    for (int n = h * 8; n < h * 8 + 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const RowState& state = states_[i / 2];
        const int key = (n - h * 8) * 8 + (lane_ % 4) * 2 + i % 2;
        bool seen =
            key < half.keys && state.token >= segment.row_begin && state.token < segment.row_end;
        if (segment.own_run != 0) {
          seen = seen && first_key + key >= state.run_first && first_key + key <= state.row;
        }
        if (!seen) scores[n * 4 + i] = -INFINITY;
      }
    }
  }

  struct Corrections {
    float factor[2];
  };

  /// Scores become exp2((score - top) * scale); returns the factors by which outputs must shrink.
  __device__ Corrections Soften(const Piece& piece, float (&scores)[64]) {
    MaskHalf(piece.halves[0], 0, scores);
    MaskHalf(piece.halves[1], 1, scores);
    constexpr float kScale = 0.08838834764831845f * 1.44269504088896f;  // 1 / sqrt(128), log2(e)
    Corrections corrections;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      float top = state.top;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        top = fmaxf(top, fmaxf(scores[n * 4 + 2 * half], scores[n * 4 + 2 * half + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
      // A row that has seen no key keeps weight 0; minus infinity minus itself would be NaN (case
      // 50).
      const float shift = top == -INFINITY ? 0.0f : top * kScale;
      corrections.factor[half] = Exp2(state.top * kScale - shift);
      state.top = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = n * 4 + 2 * half; i < n * 4 + 2 * half + 2; ++i) {
          scores[i] = Exp2(fmaf(scores[i], kScale, -shift));
          sum += scores[i];
        }
      }
      state.sum = state.sum * corrections.factor[half] + sum;
    }
    return corrections;
  }

  __device__ void Correct(const Corrections& corrections) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n * 4 + i] *= corrections.factor[i / 2];
    }
  }

  __device__ static void PackWeights(const float (&scores)[64],
                                     unsigned (&weights)[kKeys / 16][4]) {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      weights[k][0] = PackPair(scores[8 * k], scores[8 * k + 1]);
      weights[k][1] = PackPair(scores[8 * k + 2], scores[8 * k + 3]);
      weights[k][2] = PackPair(scores[8 * k + 4], scores[8 * k + 5]);
      weights[k][3] = PackPair(scores[8 * k + 6], scores[8 * k + 7]);
    }
  }

  __device__ void Finish(int kv_head) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      state.sum += __shfl_xor_sync(0xffffffff, state.sum, 1);
      state.sum += __shfl_xor_sync(0xffffffff, state.sum, 2);
      const float inverse = state.sum == 0 ? 0.0f : 1.0f / state.sum;
      float amax = 0;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
#pragma unroll
        for (int i = n * 4 + 2 * half; i < n * 4 + 2 * half + 2; ++i) {
          output_[i] *= inverse;
          amax = fmaxf(amax, fabsf(output_[i]));
        }
      }
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffff, amax, 1));
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffff, amax, 2));
      Store(kv_head, half, amax);
    }
  }

  __device__ void Store(int kv_head, int half, float amax) const {
    const int token = states_[half].token;
    if (token >= tile_->rows || token >= kTokens) return;
    const std::int64_t row = a_.compact_queries ? tile_->first_row + token : states_[half].row;
    const int head = kv_head * G + (group_ * 64 + warp_ * 16 + lane_ / 4 + half * 8) % G;
    const std::int64_t at = row * a_.heads * D + head * D + (lane_ % 4) * 2;
    if (a_.out.bf16 != nullptr) {
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        *reinterpret_cast<unsigned*>(a_.out.bf16 + at + n * 8) =
            PackPair(output_[n * 4 + 2 * half], output_[n * 4 + 2 * half + 1]);
      }
    }
    if (a_.out.fp8 == nullptr) return;
    const float scale = ScaleFor(amax, a_.rounding);
    const float inverse = 1.0f / scale;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const float2 pair =
          make_float2(output_[n * 4 + 2 * half] * inverse, output_[n * 4 + 2 * half + 1] * inverse);
      *reinterpret_cast<__nv_fp8x2_storage_t*>(a_.out.fp8 + at + n * 8) =
          __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
    }
    if (lane_ % 4 == 0) a_.out.scales[head * a_.out.scale_pitch + row] = scale;
  }

  const AttentionArguments& a_;
  SharedMemory& shared_;
  const int group_;
  const int warp_;
  const int lane_;
  const AttentionTile* tile_ = nullptr;
  bool single_run_ = false;
  int first_query_row_ = 0;
  RowState states_[2];
  RingPosition ring_;
  unsigned queries_parity_ = 0;
  unsigned q_[D / 16][4];
  float output_[64];
};

__device__ void InitBarriers(SharedMemory& shared) {
  constexpr unsigned kConsumerWarps = 4 * kConsumers;
  shared.queries_full.Init(1);
  shared.queries_empty.Init(kConsumerWarps);
  for (int stage = 0; stage < kStages; ++stage) {
    shared.keys_full[stage].Init(1);
    shared.keys_empty[stage].Init(kConsumerWarps);
    shared.values_full[stage].Init(1);
    shared.values_empty[stage].Init(kConsumerWarps);
  }
  hopper::FenceBarrierInit();
}

template <int G>
__global__ void __launch_bounds__(kThreads, 1)
    attention_wgmma_kernel(const __grid_constant__ AttentionArguments a,
                           const __grid_constant__ Maps maps) {
  extern __shared__ unsigned char raw[];
  auto& shared = *reinterpret_cast<SharedMemory*>((reinterpret_cast<std::uintptr_t>(raw) + 1023) /
                                                  1024 * 1024);
  if (threadIdx.x == 0) InitBarriers(shared);
  __syncthreads();
  const int units = a.tile_count * a.kv_heads;
  if (threadIdx.x < 128) {
    hopper::ShrinkRegisters<24>();
    if (threadIdx.x != 0) return;
    Producer<G> producer(a, maps, shared);
    for (int unit = static_cast<int>(blockIdx.x); unit < units;
         unit += static_cast<int>(gridDim.x)) {
      producer.Serve(a.tiles[unit / a.kv_heads], unit % a.kv_heads);
    }
  } else {
    hopper::GrowRegisters<240>();
    const int group = static_cast<int>(threadIdx.x / 128) - 1;
    // The first turn is the first group's.
    if (group == 1) hopper::NamedArrive(1, 256);
    Consumer<G> consumer(a, shared, group);
    for (int unit = static_cast<int>(blockIdx.x); unit < units;
         unit += static_cast<int>(gridDim.x)) {
      consumer.Serve(a.tiles[unit / a.kv_heads], unit % a.kv_heads);
    }
  }
}

/// [rows][heads][128] with `stride` elements between rows, read 64 columns, `box_heads` heads and
/// `box_rows` rows at once.
CUtensorMap HeadsMap(const __nv_bfloat16* data, std::int64_t stride, std::int64_t heads,
                     std::int64_t rows, int box_heads, int box_rows) {
  return EncodeTensorMap(
      {data,
       CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
       3,
       {D, static_cast<std::uint64_t>(heads), static_cast<std::uint64_t>(rows)},
       {D * 2, static_cast<std::uint64_t>(stride) * 2},
       {kColumnBlock, static_cast<std::uint32_t>(box_heads), static_cast<std::uint32_t>(box_rows)},
       CU_TENSOR_MAP_SWIZZLE_128B});
}

template <int G>
void Launch(const AttentionArguments& a, cudaStream_t stream) {
  static const cudaError_t configured = cudaFuncSetAttribute(
      attention_wgmma_kernel<G>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  CheckCuda(configured, "attention_wgmma_kernel's shared memory");
  Maps maps;
  maps.queries = HeadsMap(a.q, a.q_stride, a.heads, a.query_rows, G, kRows / G);
  maps.chunk_k = HeadsMap(a.chunk_k, a.kv_stride, a.kv_heads, a.chunk_rows, 1, kHalf);
  maps.chunk_v = HeadsMap(a.chunk_v, a.kv_stride, a.kv_heads, a.chunk_rows, 1, kHalf);
  if (a.arena_slots > 0) {
    const std::int64_t stride = std::int64_t{a.kv_heads} * D;
    maps.arena_k = HeadsMap(a.arena_k, stride, a.kv_heads, a.arena_slots, 1, kHalf);
    maps.arena_v = HeadsMap(a.arena_v, stride, a.kv_heads, a.arena_slots, 1, kHalf);
  } else {
    maps.arena_k = maps.chunk_k;
    maps.arena_v = maps.chunk_v;
  }
  const int blocks = std::min(a.tile_count * a.kv_heads, 132);
  attention_wgmma_kernel<G>
      <<<static_cast<unsigned>(blocks), kThreads, kSharedBytes, stream>>>(a, maps);
  CheckCuda(cudaGetLastError(), "attention_wgmma_kernel");
}

}  // namespace

void LaunchAttentionWgmma(const AttentionArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK_EQ(arguments.head_dim, D);
  switch (arguments.heads / arguments.kv_heads) {
    case 2:
      return Launch<2>(arguments, stream);
    case 4:
      return Launch<4>(arguments, stream);
    case 5:
      return Launch<5>(arguments, stream);
    case 8:
      return Launch<8>(arguments, stream);
    default:
      QUAIL_CHECK(false);
  }
}

}  // namespace quail::infer::cuda
