#include "infer/cuda/gemm_select.h"

namespace quail::infer::cuda {
namespace {

constexpr std::int64_t kSms = 132;  // H100 SXM and H200

}  // namespace

std::int64_t GemmTiles(const GemmShape& shape, std::int64_t tile_m, std::int64_t tile_n) {
  return ((shape.m + tile_m - 1) / tile_m) * ((shape.n + tile_n - 1) / tile_n);
}

std::optional<Fp8Gemm> SelectFp8Gemm(const GemmShape& shape) {
  if (shape.n % 128 != 0 || shape.k % 128 != 0) return std::nullopt;
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0 || shape.m >= (std::int64_t{1} << 31)) {
    return std::nullopt;
  }
  // Below two waves of large tiles the idle part of the last wave costs more than the small tile
  // does.
  return GemmTiles(shape, 256, 128) >= 2 * kSms ? Fp8Gemm::k256x128 : Fp8Gemm::k128x128;
}

}  // namespace quail::infer::cuda
