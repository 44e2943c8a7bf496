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

/// Columns [column, column + 32) of 32 rows.
void Product32(const Bf16Product& p, std::int32_t column) {
  float* upper = p.c + column;
  float* lower = upper + kTile * p.ldc;
  const std::int64_t c_stride = p.ldc * 4;
  if (p.accumulate) {
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
  for (std::int32_t l = 0; l < p.k; l += kBf16Depth) {
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
void Product16(const Bf16Product& p, std::int32_t column) {
  float* upper = p.c + column;
  const std::int64_t c_stride = p.ldc * 4;
  if (p.accumulate) {
    _tile_loadd(0, upper, c_stride);
    _tile_loadd(1, upper + kTile, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (std::int32_t l = 0; l < p.k; l += kBf16Depth) {
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
void ProductTail(const Bf16Product& p) {
  alignas(64) float copy[kTile * kKeyBlock] = {};
  for (std::int32_t i = 0; i < p.m && p.accumulate; ++i) {
    std::memcpy(copy + i * kKeyBlock, p.c + i * p.ldc, kKeyBlock * sizeof(float));
  }
  MemoryIsWritten();
  Bf16Product tail = p;
  tail.c = copy;
  tail.ldc = kKeyBlock;
  for (std::int32_t column = 0; column < kKeyBlock; column += 2 * kTile) Product16(tail, column);
  MemoryIsWritten();
  for (std::int32_t i = 0; i < p.m; ++i) {
    std::memcpy(p.c + i * p.ldc, copy + i * kKeyBlock, kKeyBlock * sizeof(float));
  }
}

void Product64(const Bf16Product& product) {
  MemoryIsWritten();
  Bf16Product left = product;
  const auto advance = [&left](std::int32_t rows) {
    left.m -= rows;
    left.a += rows * left.lda;
    left.c += rows * left.ldc;
  };
  for (; left.m >= 2 * kTile; advance(2 * kTile)) {
    Product32(left, 0);
    Product32(left, 2 * kTile);
  }
  if (left.m >= kTile) {
    Product16(left, 0);
    Product16(left, 2 * kTile);
    advance(kTile);
  }
  if (left.m > 0) ProductTail(left);
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
