#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "infer/cuda/attention_work.h"
#include "infer/cuda/gemm_select.h"
#include "infer/weights/block_scale.h"

/// Launchers of the kernels: plain shapes and pointers, no prompts, no models. All are asynchronous
/// on `stream`. Letters as in infer/backend.h. fp8 activations are e4m3 with one fp32 scale per row
/// and 128 columns, the scales stored [columns / 128][scale_pitch].
namespace quail::infer::cuda {

/// An activation matrix [rows, columns] in one or both forms; a null pointer = not wanted.
struct Activation {
  __nv_bfloat16* bf16 = nullptr;
  __nv_fp8_e4m3* fp8 = nullptr;
  float* scales = nullptr;
  std::int64_t scale_pitch = 0;  ///< floats between two column blocks, >= rows, multiple of 4
};

/// residual [rows, C] = table[tokens]; out = RMSNorm(residual) * weight.
struct EmbedArguments {
  const std::int32_t* tokens = nullptr;        ///< [rows]
  const __nv_bfloat16* table = nullptr;        ///< [V, C]
  const __nv_bfloat16* norm_weight = nullptr;  ///< [C]
  __nv_bfloat16* residual = nullptr;           ///< [rows, C]
  Activation out;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  float epsilon = 0;
  BlockScale rounding = BlockScale::kExact;
};
void LaunchEmbed(const EmbedArguments& arguments, cudaStream_t stream);

/// residual += delta; out = RMSNorm(residual) * weight.
struct NormArguments {
  const __nv_bfloat16* delta = nullptr;        ///< [rows, C]
  const __nv_bfloat16* norm_weight = nullptr;  ///< [C]
  __nv_bfloat16* residual = nullptr;           ///< [rows, C]
  Activation out;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  float epsilon = 0;
  BlockScale rounding = BlockScale::kExact;
};
void LaunchAddNorm(const NormArguments& arguments, cudaStream_t stream);

/// inner [rows, F] = silu(gate) * up, where gate_up is [rows, 2F], gate first.
struct SwiGluArguments {
  const __nv_bfloat16* gate_up = nullptr;
  Activation inner;
  std::int32_t rows = 0;
  std::int32_t columns = 0;  ///< F
  BlockScale rounding = BlockScale::kExact;
};
void LaunchSwiGlu(const SwiGluArguments& arguments, cudaStream_t stream);

/// Copies rows of a bf16 matrix and of an activation: out[i] = in[row_index[i]].
struct GatherArguments {
  const std::int32_t* row_index = nullptr;  ///< [rows]
  const __nv_bfloat16* residual = nullptr;
  __nv_bfloat16* residual_out = nullptr;
  Activation in;
  Activation out;
  std::int32_t rows = 0;
  std::int32_t columns = 0;
};
void LaunchGather(const GatherArguments& arguments, cudaStream_t stream);

/// Adds biases, norms and rotates heads in place, and places K and V in the arena. A row whose
/// value heads are not finite gets zero values and NaN keys: it is NaN to itself and harmless to
/// rows that share its tile.
struct RopeArguments {
  __nv_bfloat16* heads = nullptr;  ///< [rows, row_stride], q, k and v heads as the three counts say
  std::int64_t row_stride = 0;
  std::int32_t q_heads = 0;
  std::int32_t k_heads = 0;                 ///< also the number of value heads; 0 = queries only
  const __nv_bfloat16* bias = nullptr;      ///< [(q + 2k) * D] or null
  const __nv_bfloat16* q_norm = nullptr;    ///< [D] or null
  const __nv_bfloat16* k_norm = nullptr;    ///< [D] or null
  const float2* rotation = nullptr;         ///< [context, D / 2] cosine and sine
  const std::int32_t* positions = nullptr;  ///< [rows]
  const std::int64_t* kv_slots = nullptr;   ///< [rows], -1 = not kept; null = none
  __nv_bfloat16* arena_k = nullptr;         ///< [slots, K, D] of this layer
  __nv_bfloat16* arena_v = nullptr;
  std::int32_t rows = 0;
  std::int32_t head_dim = 0;
  float epsilon = 0;
};
void LaunchRope(const RopeArguments& arguments, cudaStream_t stream);

struct AttentionArguments {
  const QueryRow* rows = nullptr;  ///< device copies of an AttentionWork
  const AttentionTile* tiles = nullptr;
  const KeySegment* segments = nullptr;
  std::int32_t tile_count = 0;
  bool compact_queries = false;      ///< query i is row i of `q`, else row rows[i].row
  const __nv_bfloat16* q = nullptr;  ///< [query_rows, q_stride], head h at h * D
  std::int64_t query_rows = 0;
  std::int64_t q_stride = 0;
  const __nv_bfloat16* chunk_k = nullptr;  ///< [chunk_rows, kv_stride], KV head k at k * D
  std::int64_t chunk_rows = 0;
  const __nv_bfloat16* chunk_v = nullptr;
  std::int64_t kv_stride = 0;
  const __nv_bfloat16* arena_k =
      nullptr;  ///< [arena_slots, K, D]; every value in arena and chunk is finite
  const __nv_bfloat16* arena_v = nullptr;
  std::int64_t arena_slots = 0;
  Activation out;  ///< [rows, H * D]; fp8 needs D = 128
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  BlockScale rounding = BlockScale::kExact;
};
/// REQUIRES: SelectAttention has a kernel for the heads.
void LaunchAttention(const AttentionArguments& arguments, cudaStream_t stream);
/// The variant of LaunchAttention for heads of size 128 (attention_wgmma.cu). REQUIRES: the rows of
/// a tile are neighbours in `q`.
void LaunchAttentionWgmma(const AttentionArguments& arguments, cudaStream_t stream);

/// out [m, n] (row pitch `out_stride`) = a [m, k] b^T for block-scaled fp8.
struct Fp8GemmArguments {
  const __nv_fp8_e4m3* a = nullptr;
  const float* a_scales = nullptr;
  std::int64_t a_scale_pitch = 0;
  const __nv_fp8_e4m3* b = nullptr;  ///< [n, k]
  const float* b_scales = nullptr;   ///< [n / 128, k / 128]
  __nv_bfloat16* out = nullptr;
  std::int64_t out_stride = 0;
  GemmShape shape;
};
void LaunchFp8Gemm(const Fp8GemmArguments& arguments, cudaStream_t stream);

/// logits [rows, n] = x [rows, C] head [n, C]^T, fp32.
struct AnswerArguments {
  const __nv_bfloat16* x = nullptr;
  const std::int32_t* row_index = nullptr;  ///< [rows] rows of x
  const __nv_bfloat16* head = nullptr;
  float* logits = nullptr;
  std::int32_t rows = 0;
  std::int32_t n = 0;
  std::int32_t columns = 0;
};
void LaunchAnswerLogits(const AnswerArguments& arguments, cudaStream_t stream);

/// log_probs[i] = logits[i][targets[i]] - log(sum over [0, vocabulary) of exp(logits[i][..])).
struct LogProbArguments {
  const float* logits = nullptr;  ///< [rows, pitch]
  const std::int32_t* targets = nullptr;
  float* log_probs = nullptr;
  std::int32_t rows = 0;
  std::int32_t vocabulary = 0;
  std::int64_t pitch = 0;
};
void LaunchLogProbs(const LogProbArguments& arguments, cudaStream_t stream);

}  // namespace quail::infer::cuda
