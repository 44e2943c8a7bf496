#include <cmath>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "infer/cuda/attention_select.h"
#include "infer/cuda/device_memory.h"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

/// Attention of a chunk's query rows over key segments, one pass, online softmax (Dao,
/// FlashAttention-2, arXiv 2307.08691, section 3). A block serves one tile for one KV head: 128
/// query rows = (token, head of the group) pairs, so that grouped heads share every key read; 8
/// warps of 16 rows, mma.m16n8k16 bf16 with fp32 sums; keys and values in 64-key pieces, two stages
/// of cp.async. Grid: (KV heads, tiles), neighbours read the same keys. FLOPs: 4 * 128 * D a key;
/// bytes from L2: 4 * D a key and block.
namespace quail::infer::cuda {
namespace {

constexpr int kRows = kAttentionTileRows;
constexpr int kKeys = 64;
constexpr int kWarps = kRows / 16;
constexpr int kThreads = kWarps * 32;
constexpr int kStages = 2;

__device__ inline unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void CopyAsync(void* to, const void* from, bool valid) {
  // With a source size of 0 the 16 bytes are filled with zeros and nothing is read.
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(SharedAddress(to)),
               "l"(from), "r"(valid ? 16 : 0));
}

__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;\n"); }

template <int kPending>
__device__ inline void WaitCopies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending));
}

__device__ inline void LoadMatrices(unsigned (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(from)));
}

__device__ inline void LoadMatricesTransposed(unsigned (&r)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(SharedAddress(from)));
}

__device__ inline void MultiplyAdd(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                   unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Rows of D elements in 16-byte pieces, the piece index exclusive-ored with the row: ldmatrix
/// reads 8 rows of one column without bank conflicts.
template <int D>
struct SwizzledRows {
  __nv_bfloat16* base;

  __device__ __nv_bfloat16* At(int row, int piece) const {
    return base + row * D + (piece ^ (row & 7)) * kPiece;
  }
};

/// Where the keys of a piece come from, and how many there are.
struct KeyPiece {
  const __nv_bfloat16* k = nullptr;
  const __nv_bfloat16* v = nullptr;
  std::int64_t stride = 0;
  int keys = 0;
};

/// Walks a tile's segments in pieces of kKeys keys.
class KeyCursor {
 public:
  __device__ KeyCursor(const AttentionArguments& a, const AttentionTile& tile)
      : a_(a), segment_(a.segments + tile.first_segment), end_(segment_ + tile.segments) {}

  __device__ bool done() const { return segment_ == end_; }
  __device__ const KeySegment& segment() const { return *segment_; }
  __device__ int offset() const { return offset_; }

  __device__ KeyPiece Piece(int kv_head) const {
    const KeySegment& s = *segment_;
    const std::int64_t first = s.first + offset_;
    const int keys = min(kKeys, s.length - offset_);
    const std::int64_t column = static_cast<std::int64_t>(kv_head) * a_.head_dim;
    if (s.in_chunk != 0) {
      const std::int64_t at = first * a_.kv_stride + column;
      return {a_.chunk_k + at, a_.chunk_v + at, a_.kv_stride, keys};
    }
    const std::int64_t stride = static_cast<std::int64_t>(a_.kv_heads) * a_.head_dim;
    return {a_.arena_k + first * stride + column, a_.arena_v + first * stride + column, stride,
            keys};
  }

  __device__ void Advance() {
    offset_ += kKeys;
    if (offset_ >= segment_->length) {
      ++segment_;
      offset_ = 0;
    }
  }

 private:
  const AttentionArguments& a_;
  const KeySegment* segment_;
  const KeySegment* end_;
  int offset_ = 0;
};

template <int D>
__device__ void LoadRowsAsync(SwizzledRows<D> to, const __nv_bfloat16* from, std::int64_t stride,
                              int rows) {
  constexpr int kPieces = D / kPiece;
#pragma unroll
  for (int i = 0; i < kKeys * kPieces / kThreads; ++i) {
    const int index = i * kThreads + static_cast<int>(threadIdx.x);
    const int row = index / kPieces;
    const int piece = index % kPieces;
    const bool valid = row < rows;
    CopyAsync(to.At(row, piece), from + (valid ? row * stride : 0) + piece * kPiece, valid);
  }
}

/// What one of a thread's two query rows may see, and its softmax state.
struct RowState {
  int token = 0;  ///< row of the tile
  int row = 0;    ///< row of the chunk
  int run_first = 0;
  float top = -INFINITY;
  float sum = 0;
};

template <int D, int G>
class TileAttention {
 public:
  static constexpr int kTokens = kRows / G;
  static constexpr std::size_t kSharedBytes =
      (kRows + kStages * 2 * kKeys) * D * sizeof(__nv_bfloat16);

  __device__ TileAttention(const AttentionArguments& a, __nv_bfloat16* shared)
      : a_(a),
        tile_(a.tiles[blockIdx.y]),
        kv_head_(static_cast<int>(blockIdx.x)),
        warp_(static_cast<int>(threadIdx.x / 32)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        queries_{shared},
        staged_(shared + kRows * D) {}

  __device__ void Run() {
    LoadQueries();
    InitRows();
    KeyCursor ahead(a_, tile_);
    for (int stage = 0; stage < kStages; ++stage) Stage(ahead, stage);
    WaitCopies<kStages>();  // the queries' own group is the oldest
    __syncthreads();
    ReadQueries();
    int stage = 0;
    for (KeyCursor cursor(a_, tile_); !cursor.done(); cursor.Advance()) {
      WaitCopies<kStages - 1>();
      __syncthreads();
      Attend(cursor, stage);
      __syncthreads();
      Stage(ahead, stage);
      stage = (stage + 1) % kStages;
    }
    WaitCopies<0>();
    Finish();
  }

 private:
  __device__ SwizzledRows<D> Keys(int stage) const { return {staged_ + stage * 2 * kKeys * D}; }
  __device__ SwizzledRows<D> Values(int stage) const {
    return {staged_ + (stage * 2 + 1) * kKeys * D};
  }

  __device__ void LoadQueries() {
    constexpr int kPieces = D / kPiece;
    for (int index = static_cast<int>(threadIdx.x); index < kRows * kPieces; index += kThreads) {
      const int row = index / kPieces;
      const int piece = index % kPieces;
      const int token = row / G;
      const bool valid = token < tile_.rows && token < kTokens;
      const std::int64_t listed = tile_.first_row + (valid ? token : 0);
      const std::int64_t source = a_.compact_queries ? listed : a_.rows[listed].row;
      const int head = kv_head_ * G + (valid ? row % G : 0);
      CopyAsync(queries_.At(row, piece), a_.q + source * a_.q_stride + head * D + piece * kPiece,
                valid);
    }
    CommitCopies();
  }

  /// Starts loading the cursor's piece; always commits a group, so that counting groups stays
  /// simple.
  __device__ void Stage(KeyCursor& cursor, int stage) {
    if (!cursor.done()) {
      const KeyPiece piece = cursor.Piece(kv_head_);
      LoadRowsAsync<D>(Keys(stage), piece.k, piece.stride, piece.keys);
      LoadRowsAsync<D>(Values(stage), piece.v, piece.stride, piece.keys);
      cursor.Advance();
    }
    CommitCopies();
  }

  __device__ void InitRows() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      state.token = (warp_ * 16 + lane_ / 4 + half * 8) / G;
      const int listed = tile_.first_row + min(state.token, tile_.rows - 1);
      state.row = a_.rows[listed].row;
      state.run_first = a_.rows[listed].run_first;
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output_[n][i] = 0;
    }
  }

  __device__ void ReadQueries() {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      LoadMatrices(q_[k], queries_.At(warp_ * 16 + (lane_ & 15), k * 2 + (lane_ >> 4)));
    }
  }

  __device__ void Attend(const KeyCursor& cursor, int stage) {
    float scores[kKeys / 8][4];
    Scores(stage, scores);
    const KeySegment& segment = cursor.segment();
    const int keys = min(kKeys, segment.length - cursor.offset());
    const bool whole = keys == kKeys && segment.own_run == 0 && segment.row_begin == 0 &&
                       segment.row_end >= tile_.rows;
    if (!whole) Mask(segment, cursor.offset(), scores);
    Soften(scores);
    Accumulate(stage, scores);
  }

  __device__ void Scores(int stage, float (&scores)[kKeys / 8][4]) const {
    const SwizzledRows<D> keys = Keys(stage);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[n][i] = 0;
    }
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        unsigned b[4];
        LoadMatrices(
            b, keys.At(n * 16 + (lane_ & 7) + ((lane_ >> 4) << 3), k * 2 + ((lane_ >> 3) & 1)));
        MultiplyAdd(scores[2 * n], q_[k], b[0], b[1]);
        MultiplyAdd(scores[2 * n + 1], q_[k], b[2], b[3]);
      }
    }
  }

  __device__ void Mask(const KeySegment& segment, int offset, float (&scores)[kKeys / 8][4]) const {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const RowState& state = states_[i / 2];
        const int key = offset + n * 8 + (lane_ % 4) * 2 + i % 2;
        bool seen = key < segment.length && state.token >= segment.row_begin &&
                    state.token < segment.row_end;
        if (segment.own_run != 0) {
          const int key_row = static_cast<int>(segment.first) + key;
          seen = seen && key_row >= state.run_first && key_row <= state.row;
        }
        if (!seen) scores[n][i] = -INFINITY;
      }
    }
  }

  /// Scores become exp2((score - top) * scale); the running sums and outputs follow a new maximum.
  __device__ void Soften(float (&scores)[kKeys / 8][4]) {
    const float scale = rsqrtf(static_cast<float>(D)) * 1.44269504f;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      float top = state.top;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        top = fmaxf(top, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
      // A row that has seen no key keeps weight 0; minus infinity minus itself would be NaN (case
      // 50).
      const float shift = top == -INFINITY ? 0.0f : top * scale;
      const float correction = exp2f(state.top * scale - shift);
      state.top = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2f(fmaf(scores[n][i], scale, -shift));
          sum += scores[n][i];
        }
      }
      state.sum = state.sum * correction + sum;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        output_[n][2 * half] *= correction;
        output_[n][2 * half + 1] *= correction;
      }
    }
  }

  __device__ void Accumulate(int stage, const float (&weights)[kKeys / 8][4]) {
    const SwizzledRows<D> values = Values(stage);
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      const unsigned a[4] = {PackPair(weights[2 * k][0], weights[2 * k][1]),
                             PackPair(weights[2 * k][2], weights[2 * k][3]),
                             PackPair(weights[2 * k + 1][0], weights[2 * k + 1][1]),
                             PackPair(weights[2 * k + 1][2], weights[2 * k + 1][3])};
#pragma unroll
      for (int n = 0; n < D / 16; ++n) {
        unsigned b[4];
        LoadMatricesTransposed(b, values.At(k * 16 + (lane_ & 15), n * 2 + (lane_ >> 4)));
        MultiplyAdd(output_[2 * n], a, b[0], b[1]);
        MultiplyAdd(output_[2 * n + 1], a, b[2], b[3]);
      }
    }
  }

  __device__ void Finish() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      state.sum += __shfl_xor_sync(0xffffffff, state.sum, 1);
      state.sum += __shfl_xor_sync(0xffffffff, state.sum, 2);
      const float inverse = state.sum == 0 ? 0.0f : 1.0f / state.sum;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        output_[n][2 * half] *= inverse;
        output_[n][2 * half + 1] *= inverse;
      }
      Store(half);
    }
  }

  __device__ void Store(int half) const {
    const int tile_row = warp_ * 16 + lane_ / 4 + half * 8;
    const int token = tile_row / G;
    if (token >= tile_.rows || token >= kTokens) return;
    const std::int64_t listed = tile_.first_row + token;
    const std::int64_t row = a_.compact_queries ? listed : a_.rows[listed].row;
    const int head = kv_head_ * G + tile_row % G;
    const std::int64_t at = row * a_.heads * D + head * D + (lane_ % 4) * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      *reinterpret_cast<unsigned*>(a_.out.bf16 + at + n * 8) =
          PackPair(output_[n][2 * half], output_[n][2 * half + 1]);
    }
  }

  const AttentionArguments& a_;
  const AttentionTile tile_;
  const int kv_head_;
  const int warp_;
  const int lane_;
  const SwizzledRows<D> queries_;
  __nv_bfloat16* const staged_;
  RowState states_[2];
  unsigned q_[D / 16][4];
  float output_[D / 8][4];
};

template <int D, int G>
__global__ void __launch_bounds__(kThreads, 1)
    attention_mma_kernel(const __grid_constant__ AttentionArguments a) {
  extern __shared__ __align__(128) unsigned char shared[];
  TileAttention<D, G>(a, reinterpret_cast<__nv_bfloat16*>(shared)).Run();
}

template <int D, int G>
void Launch(const AttentionArguments& a, cudaStream_t stream) {
  using Tile = TileAttention<D, G>;
  static const cudaError_t configured = cudaFuncSetAttribute(
      attention_mma_kernel<D, G>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::kSharedBytes);
  CheckCuda(configured, "attention_mma_kernel's shared memory");
  constexpr std::int32_t kTilesPerLaunch = 65535;
  for (std::int32_t first = 0; first < a.tile_count; first += kTilesPerLaunch) {
    AttentionArguments part = a;
    part.tiles += first;
    part.tile_count = std::min(kTilesPerLaunch, a.tile_count - first);
    const dim3 grid(static_cast<unsigned>(a.kv_heads), static_cast<unsigned>(part.tile_count));
    attention_mma_kernel<D, G><<<grid, kThreads, Tile::kSharedBytes, stream>>>(part);
    CheckCuda(cudaGetLastError(), "attention_mma_kernel");
  }
}

template <std::size_t... I>
void LaunchGroup(const AttentionArguments& a, cudaStream_t stream, std::index_sequence<I...>) {
  const std::int32_t group = a.heads / a.kv_heads;
  const bool launched =
      ((group == kMmaGroups[I] && (Launch<kMmaHeadDim, kMmaGroups[I]>(a, stream), true)) || ...);
  QUAIL_CHECK(launched);
}

void LaunchAttentionMma(const AttentionArguments& arguments, cudaStream_t stream) {
  QUAIL_CHECK(arguments.out.fp8 == nullptr);
  LaunchGroup(arguments, stream, std::make_index_sequence<std::size(kMmaGroups)>{});
}

}  // namespace

void LaunchAttention(const AttentionArguments& arguments, cudaStream_t stream) {
  const auto kernel = SelectAttention(arguments.head_dim, arguments.heads / arguments.kv_heads);
  QUAIL_CHECK(kernel.has_value());
  if (arguments.tile_count == 0) return;
  switch (*kernel) {
    case AttentionKernel::kMma:
      return LaunchAttentionMma(arguments, stream);
    case AttentionKernel::kWgmma:
      return LaunchAttentionWgmma(arguments, stream);
  }
}

}  // namespace quail::infer::cuda
