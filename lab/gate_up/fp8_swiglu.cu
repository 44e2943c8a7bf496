#include "approximate.cuh"
#include "base/check.h"
#include "fp8_swiglu.h"
#include "gemm_pair.cuh"
#include "infer/cuda/launch.h"
#include "infer/cuda/quantize.cuh"

namespace quail::infer::cuda {
namespace {

/// inner = silu(gate) * up, quantised: a tile's two column blocks are gate and up of the same 128
/// columns of `inner`, which are one block of its scales. Bytes a row beside the product's: F.
struct SwiGluEpilogue {
  Activation inner;
  std::int32_t m;
  std::int32_t columns;  ///< F
  BlockScale rounding;

  __device__ pair::BlockPair Blocks(int column) const {
    return {column, columns / pair::kBlock + column};
  }

  __device__ void Finish(int column, int row, float (&gate)[64], const float (&up)[64]) const {
#pragma unroll
    for (int i = 0; i < 64; ++i) gate[i] = Silu(gate[i]) * up[i];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float amax = 0;
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        amax = fmaxf(amax, fmaxf(fabsf(gate[n * 4 + 2 * half]), fabsf(gate[n * 4 + 2 * half + 1])));
      }
      const float scale = ScaleFor(RowMaximum(amax), rounding);
      const std::int64_t to = row + 8 * half;
      const bool listed = to < m;
      StoreFp8Row(gate, half, 1.0f / scale,
                  listed ? inner.fp8 + to * columns + column * pair::kBlock : nullptr);
      if (listed && threadIdx.x % 4 == 0) inner.scales[column * inner.scale_pitch + to] = scale;
    }
  }
};

}  // namespace

void LaunchFp8SwiGlu(const Fp8SwiGluArguments& a, cudaStream_t stream) {
  QUAIL_CHECK_EQ(a.columns % pair::kBlock, 0);
  pair::PairProduct product;
  product.a = a.x;
  product.a_scales = a.x_scales;
  product.a_scale_pitch = a.x_scale_pitch;
  product.b = a.gate_up;
  product.b_scales = a.gate_up_scales;
  product.b_rows = std::int64_t{2} * a.columns;
  product.m = a.rows;
  product.k = a.depth;
  product.pairs = a.columns / pair::kBlock;
  pair::LaunchPair(product, SwiGluEpilogue{a.inner, a.rows, a.columns, a.rounding}, stream);
}

}  // namespace quail::infer::cuda
