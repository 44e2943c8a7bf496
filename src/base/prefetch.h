#pragma once

#include <algorithm>
#include <cstddef>

namespace quail::base {

/// Calls memory that is read soon into the caches, of long runs the beginning: the processor goes
/// on by itself from there.
inline void Prefetch(const void* data, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 4096;
  const auto* at = static_cast<const char*>(data);
  for (std::size_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(at + i);
}

}  // namespace quail::base
