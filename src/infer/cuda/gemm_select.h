#pragma once

#include <cstdint>
#include <optional>

namespace quail::infer::cuda {

/// D [m, n] = A [m, k] B [n, k]^T.
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// The block-scaled fp8 kernels that are compiled in.
enum class Fp8Gemm : std::uint8_t {
  k256x128,  ///< 3 stages, clusters of 2 sharing A: the fastest at large m (docs/kernels.md)
  k128x128,  ///< 5 stages, single blocks: less waste at small m
};

/// The variant for a shape; nullopt = not supported: n and k must be multiples of 128, m below
/// 2^31.
std::optional<Fp8Gemm> SelectFp8Gemm(const GemmShape& shape);

/// Tiles of `tile` rows and columns that cover the shape, for tests and for the choice above.
std::int64_t GemmTiles(const GemmShape& shape, std::int64_t tile_m, std::int64_t tile_n);

}  // namespace quail::infer::cuda
