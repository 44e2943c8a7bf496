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

}  // namespace
}  // namespace quail::infer::cpu
