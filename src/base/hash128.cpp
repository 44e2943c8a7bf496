#include "base/hash128.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace quail::base {

std::string Hash128::ToHex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 HashBytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

Hash128 HashBytes(std::string_view text, std::uint64_t seed) {
  return HashBytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

Hash128 Combine(const Hash128& a, const Hash128& b) {
  const std::uint64_t words[4] = {a.low, a.high, b.low, b.high};
  return HashBytes(std::as_bytes(std::span(words)));
}

}  // namespace quail::base
