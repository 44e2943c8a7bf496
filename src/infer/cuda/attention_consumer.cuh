#pragma once

#include <cmath>
#include <cute/arch/mma_sm90_gmma.hpp>
#include <utility>

#include "infer/cuda/attention_pipeline.cuh"
#include "infer/cuda/quantize.cuh"

namespace quail::infer::cuda::wgmma {

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

/// One warpgroup that holds 64 query rows: starts the next scores before it softens the present
/// ones, and takes turns at the tensor cores with the other.
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

  /// The next tile, for one KV head.
  __device__ void Serve(int kv_head) {
    ReadTile();
    Attend();
    Finish(kv_head);
  }

 private:
  using All = std::make_index_sequence<64>;

  __device__ void ReadTile() {
    shared_.queries_full.Wait(queries_parity_);
    queries_parity_ ^= 1;
    ReadRows();
    ReadQueries();
    shared_.queries_empty.Arrive();
#pragma unroll
    for (int i = 0; i < 64; ++i) output_[i] = 0;
  }

  __device__ void ReadRows() {
    first_row_ = shared_.tile.first_row;
    rows_ = shared_.tile.count;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      state.token = (group_ * 64 + warp_ * 16 + lane_ / 4 + half * 8) / G;
      const QueryRow listed = shared_.tile.rows[min(state.token, rows_ - 1)];
      state.row = listed.row;
      state.run_first = listed.run_first;
      state.top = -INFINITY;
      state.sum = 0;
    }
  }

  __device__ void ReadQueries() {
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
  }

  __device__ void Attend() {
    float scores[64];
    unsigned weights[kKeys / 16][4];
    RingPosition values_at = ring_;
    StartScores(scores);
    TurnOver();
    hopper::WaitProducts<0>();
    hopper::PinRegisters(scores);
    Piece piece = TakePiece();
    Soften(piece, scores);
    PackWeights(scores, weights);
    while (!piece.last()) {
      StartScores(scores);
      StartValues(weights, values_at);
      TurnOver();
      hopper::WaitProducts<1>();
      hopper::PinRegisters(scores);
      piece = TakePiece();
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

  /// Reads what the piece masks and gives its keys back. The lane that gives them back is the one
  /// that reads, so that the producer may write over the description.
  __device__ Piece TakePiece() {
    uint4 words = {};
    if (lane_ == 0) {
      words = *reinterpret_cast<const uint4*>(&shared_.pieces[ring_.stage]);
      shared_.keys_empty[ring_.stage].Arrive();
    }
    ring_.Advance();
    words.x = __shfl_sync(0xffffffff, words.x, 0);
    words.y = __shfl_sync(0xffffffff, words.y, 0);
    words.z = __shfl_sync(0xffffffff, words.z, 0);
    words.w = __shfl_sync(0xffffffff, words.w, 0);
    Piece piece;
    memcpy(&piece, &words, sizeof(piece));
    return piece;
  }

  __device__ void ReleaseValues(RingPosition& at) {
    if (lane_ == 0) shared_.values_empty[at.stage].Arrive();
    at.Advance();
  }

  __device__ void MaskHalf(const HalfPiece& half, int h, float (&scores)[64]) const {
    if (half.Has(HalfPiece::kWhole)) return;
#pragma unroll
    for (int n = h * 8; n < h * 8 + 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const RowState& state = states_[i / 2];
        const int key = (n - h * 8) * 8 + (lane_ % 4) * 2 + i % 2;
        bool seen = key < half.keys && state.token >= half.row_begin && state.token < half.row_end;
        if (half.Has(HalfPiece::kOwnRun)) {
          seen =
              seen && half.first_key + key >= state.run_first && half.first_key + key <= state.row;
        }
        if (!seen) scores[n * 4 + i] = -INFINITY;
      }
    }
  }

  struct Corrections {
    float factor[2];
  };

  /// Scores become exp2((score - top) * scale); returns the factors by which outputs must shrink.
  /// `top` follows the row's maximum only when it has grown by more than 2^kSlack: until then
  /// weights of up to 2^kSlack are as exact, and most pieces of a long anchor need no correction
  /// (FlashAttention-4's conditional rescaling).
  __device__ Corrections Soften(const Piece& piece, float (&scores)[64]) {
    MaskHalf(piece.halves[0], 0, scores);
    MaskHalf(piece.halves[1], 1, scores);
    constexpr float kScale = 0.08838834764831845f * 1.44269504088896f;  // 1 / sqrt(128), log2(e)
    constexpr float kSlack = 8;
    Corrections corrections;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      RowState& state = states_[half];
      float largest = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        largest = fmaxf(largest, fmaxf(scores[n * 4 + 2 * half], scores[n * 4 + 2 * half + 1]));
      }
      largest = RowMaximum(largest);
      corrections.factor[half] = 1;
      // A row that has seen no key keeps weight 0: minus infinity minus itself is NaN, which is not
      // greater (case 50).
      if ((largest - state.top) * kScale > kSlack) {
        corrections.factor[half] = Exp2((state.top - largest) * kScale);
        state.top = largest;
      }
      const float shift = state.top == -INFINITY ? 0.0f : state.top * kScale;
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
    const bool shrinks = corrections.factor[0] != 1.0f || corrections.factor[1] != 1.0f;
    if (!__any_sync(0xffffffff, shrinks)) return;
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
      amax = RowMaximum(amax);
      Store(kv_head, half, amax);
    }
  }

  __device__ void Store(int kv_head, int half, float amax) const {
    const int token = states_[half].token;
    const bool listed = token < rows_ && token < kTokens;
    const std::int64_t row = a_.compact_queries ? first_row_ + token : states_[half].row;
    const int head = kv_head * G + (group_ * 64 + warp_ * 16 + lane_ / 4 + half * 8) % G;
    const std::int64_t at = row * a_.heads * D + head * D;
    if (a_.out.bf16 != nullptr && listed) StoreBf16(a_.out.bf16 + at, half);
    if (a_.out.fp8 == nullptr) return;
    const float scale = ScaleFor(amax, a_.rounding);
    StoreFp8Row(output_, half, 1.0f / scale, listed ? a_.out.fp8 + at : nullptr);
    if (listed && lane_ % 4 == 0) a_.out.scales[head * a_.out.scale_pitch + row] = scale;
  }

  __device__ void StoreBf16(__nv_bfloat16* to, int half) const {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      *reinterpret_cast<unsigned*>(to + n * 8 + lane_ % 4 * 2) =
          PackPair(output_[n * 4 + 2 * half], output_[n * 4 + 2 * half + 1]);
    }
  }

  const AttentionArguments& a_;
  SharedMemory& shared_;
  const int group_;
  const int warp_;
  const int lane_;
  int first_row_ = 0;
  int rows_ = 0;
  RowState states_[2];
  RingPosition ring_;
  unsigned queries_parity_ = 0;
  unsigned q_[D / 16][4];
  float output_[64];
};

}  // namespace quail::infer::cuda::wgmma
