#pragma once

/// The hardware's approximations, without the paths that the language's functions take around
/// results below the normal range: those are 0 here.
namespace quail::infer::cuda {

/// 2^x, within 2 units in the last place.
__device__ inline float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x, within 1 unit in the last place.
__device__ inline float Reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// x / (1 + e^-x).
__device__ inline float Silu(float x) { return x * Reciprocal(1.0f + Exp2(x * -1.44269504f)); }

}  // namespace quail::infer::cuda
