#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace quail::infer::cpu {
namespace {

/// body(0) .. body(N - 1), each index a constant: where a loop indexes an array of vectors, GCC
/// 12 writes them to memory beside keeping them in registers.
template <std::int32_t N, typename Body>
[[gnu::always_inline]] inline void Unroll(const Body& body) {
  [&]<std::int32_t... I>(std::integer_sequence<std::int32_t, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<std::int32_t, I>{}), ...);
  }
  (std::make_integer_sequence<std::int32_t, N>{});
}

template <std::int32_t Rows, typename Tile>
void LastTile(std::int32_t count, std::int32_t row, const Tile& tile) {
  if constexpr (Rows > 0) {
    if (count - row == Rows) {
      tile(std::integral_constant<std::int32_t, Rows>{}, row);
    } else {
      LastTile<Rows - 1>(count, row, tile);
    }
  }
}

/// tile(rows, row) for tiles of `Rows` rows and one of those that are left; `rows` is a constant.
template <std::int32_t Rows, typename Tile>
void ForRowTiles(std::int32_t count, const Tile& tile) {
  std::int32_t row = 0;
  for (; row + Rows <= count; row += Rows) {
    tile(std::integral_constant<std::int32_t, Rows>{}, row);
  }
  LastTile<Rows - 1>(count, row, tile);
}

}  // namespace
}  // namespace quail::infer::cpu
