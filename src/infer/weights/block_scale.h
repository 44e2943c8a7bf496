#pragma once

#include <cstdint>

namespace quail::infer {

/// How the scale of a block of fp8 values is rounded: largest magnitude / 448 as it is, or up to a
/// power of two, as engines with ue8m0 scales do.
enum class BlockScale : std::uint8_t { kExact, kPowerOfTwo };

}  // namespace quail::infer
