#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace quail::base {

/// A 128-bit content hash (XXH3-128): identity of a text, a token run, a file. Not cryptographic.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  std::string ToHex() const;
};

/// `seed` separates kinds of content that must not share identity.
Hash128 HashBytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
Hash128 HashBytes(std::string_view text, std::uint64_t seed = 0);
/// Hash of a pair, order matters: the identity of a path from (parent, segment).
Hash128 Combine(const Hash128& a, const Hash128& b);

}  // namespace quail::base

template <>
struct std::hash<quail::base::Hash128> {
  std::size_t operator()(const quail::base::Hash128& value) const noexcept { return value.low; }
};
