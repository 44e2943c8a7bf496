#include <immintrin.h>

#include <cstring>

#include "infer/cpu/bf16_kernels.h"

/// Products on AMX tiles: 16 rows of 32 bf16 times 16 pairs of rows and 16 columns into 16 x 16
/// f32.
namespace quail::infer::cpu {
namespace {

constexpr std::int32_t kTile = 16;

// GCC's tile loads do not say that they read memory.
void MemoryIsWritten() { __asm__ volatile("" ::: "memory"); }

struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {kTile, kTile, kTile, kTile, kTile, kTile, kTile, kTile};
};
static_assert(sizeof(TileConfig) == 64);

void Begin() {
  static constexpr TileConfig kConfig{};
  _tile_loadconfig(&kConfig);
}
void End() { _tile_release(); }

struct Operands {
  const std::uint16_t* a;
  std::int64_t lda;
  const std::uint16_t* b;
  std::int64_t ldb;
  float* c;
  std::int64_t ldc;
};

/// Columns [column, column + 32) of 32 rows.
void Product32(std::int32_t k, const Operands& p, std::int32_t column, bool accumulate) {
  float* upper = p.c + column;
  float* lower = upper + kTile * p.ldc;
  const std::int64_t c_stride = p.ldc * 4;
  if (accumulate) {
    _tile_loadd(0, upper, c_stride);
    _tile_loadd(1, upper + kTile, c_stride);
    _tile_loadd(2, lower, c_stride);
    _tile_loadd(3, lower + kTile, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int32_t l = 0; l < k; l += kBf16Depth) {
    const std::uint16_t* b = p.b + l / 2 * p.ldb + std::int64_t{2} * column;
    _tile_loadd(4, p.a + l, p.lda * 2);
    _tile_loadd(5, p.a + kTile * p.lda + l, p.lda * 2);
    _tile_loadd(6, b, p.ldb * 2);
    _tile_loadd(7, b + 2 * kTile, p.ldb * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, upper, c_stride);
  _tile_stored(1, upper + kTile, c_stride);
  _tile_stored(2, lower, c_stride);
  _tile_stored(3, lower + kTile, c_stride);
}

/// Columns [column, column + 32) of 16 rows.
void Product16(std::int32_t k, const Operands& p, std::int32_t column, bool accumulate) {
  float* upper = p.c + column;
  const std::int64_t c_stride = p.ldc * 4;
  if (accumulate) {
    _tile_loadd(0, upper, c_stride);
    _tile_loadd(1, upper + kTile, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (std::int32_t l = 0; l < k; l += kBf16Depth) {
    const std::uint16_t* b = p.b + l / 2 * p.ldb + std::int64_t{2} * column;
    _tile_loadd(4, p.a + l, p.lda * 2);
    _tile_loadd(6, b, p.ldb * 2);
    _tile_loadd(7, b + 2 * kTile, p.ldb * 2);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, upper, c_stride);
  _tile_stored(1, upper + kTile, c_stride);
}

/// Fewer than 16 rows: the tile's other rows are computed in a copy and thrown away.
void ProductTail(std::int32_t rows, std::int32_t k, const Operands& p, bool accumulate) {
  alignas(64) float copy[kTile * kKeyBlock] = {};
  for (std::int32_t i = 0; i < rows && accumulate; ++i) {
    std::memcpy(copy + i * kKeyBlock, p.c + i * p.ldc, kKeyBlock * sizeof(float));
  }
  MemoryIsWritten();
  const Operands tail{p.a, p.lda, p.b, p.ldb, copy, kKeyBlock};
  for (std::int32_t column = 0; column < kKeyBlock; column += 2 * kTile) {
    Product16(k, tail, column, accumulate);
  }
  MemoryIsWritten();
  for (std::int32_t i = 0; i < rows; ++i) {
    std::memcpy(p.c + i * p.ldc, copy + i * kKeyBlock, kKeyBlock * sizeof(float));
  }
}

void Product64(std::int32_t m, std::int32_t k, const std::uint16_t* a, std::int64_t lda,
               const std::uint16_t* b, std::int64_t ldb, float* c, std::int64_t ldc,
               bool accumulate) {
  MemoryIsWritten();
  std::int32_t row = 0;
  const auto at = [&](std::int32_t first) {
    return Operands{a + first * lda, lda, b, ldb, c + first * ldc, ldc};
  };
  for (; row + 2 * kTile <= m; row += 2 * kTile) {
    Product32(k, at(row), 0, accumulate);
    Product32(k, at(row), 2 * kTile, accumulate);
  }
  if (row + kTile <= m) {
    Product16(k, at(row), 0, accumulate);
    Product16(k, at(row), 2 * kTile, accumulate);
    row += kTile;
  }
  if (row < m) ProductTail(m - row, k, at(row), accumulate);
  MemoryIsWritten();
}

}  // namespace

const Bf16Kernels& AmxKernels() {
  static const Bf16Kernels kKernels = [] {
    Bf16Kernels kernels = Avx512Bf16Kernels();
    kernels.unit = Bf16Unit::kAmx;
    kernels.name = "amx_bf16";
    kernels.begin = Begin;
    kernels.end = End;
    kernels.product64 = Product64;
    return kernels;
  }();
  return kKernels;
}

}  // namespace quail::infer::cpu
