#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash128.h"
#include "base/strong_id.h"

namespace quail::text {

using base::TokenId;

/// The ids of words seen before. Direct-mapped: a word overwrites another of the same place, so
/// memory is bounded (1.5 MiB) and nothing is ever searched. Not thread-safe.
class WordCache {
 public:
  static constexpr std::size_t kMaxShortBytes = 15;
  static constexpr std::size_t kMaxShortIds = 3;

  /// A word of 1 to 15 bytes and its length, as two integers.
  struct ShortKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const ShortKey&) const = default;
  };
  struct ShortEntry {
    ShortKey key;  ///< length 0: free
    std::array<TokenId, kMaxShortIds> ids;
    std::uint32_t count = 0;

    /// Does nothing where there are too many ids.
    void Fill(const ShortKey& word, std::span<const TokenId> word_ids) {
      if (word_ids.size() > kMaxShortIds) return;
      key = word;
      count = static_cast<std::uint32_t>(word_ids.size());
      std::copy(word_ids.begin(), word_ids.end(), ids.begin());
    }
  };

  static bool FitsShort(std::size_t bytes, std::size_t ids) {
    return bytes <= kMaxShortBytes && ids <= kMaxShortIds;
  }

  /// `readable` bytes may be read from `word` on. REQUIRES: length <= kMaxShortBytes.
  static ShortKey MakeShortKey(const char* word, std::size_t length, std::size_t readable) {
    ShortKey key;
    if (readable >= 16) [[likely]] {
      std::memcpy(&key.low, word, 8);
      std::memcpy(&key.high, word + 8, 8);
      const std::uint64_t ones = ~std::uint64_t{0};
      key.low &= length >= 8 ? ones : ~(ones << (length * 8));
      key.high &= length <= 8 ? 0 : ~(ones << (length * 8 - 64));
    } else {
      std::array<char, 16> bytes{};
      std::memcpy(bytes.data(), word, length);
      std::memcpy(&key.low, bytes.data(), 8);
      std::memcpy(&key.high, bytes.data() + 8, 8);
    }
    key.high |= std::uint64_t{length} << 56;
    return key;
  }

  /// Where `key` is if it is cached. The caller compares, and overwrites.
  ShortEntry& ShortPlace(const ShortKey& key) {
    const std::uint64_t mixed = (key.low ^ (key.high * 0x9FB21C651E98DF25U)) * 0x9E3779B97F4A7C15U;
    return short_entries_[mixed >> (64 - kShortBits)];
  }

  /// The ids of a longer word, or of one with many ids; empty where not cached.
  std::span<const TokenId> FindLong(std::string_view word) {
    if (word.size() > kMaxLongBytes) return {};
    const LongEntry& entry = long_entries_[LongPlace(word)];
    if (entry.length != word.size() ||
        std::memcmp(entry.bytes.data(), word.data(), word.size()) != 0) {
      return {};
    }
    return {entry.ids.data(), entry.count};
  }

  void AddLong(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() > kMaxLongBytes || ids.size() > kMaxLongIds) return;
    LongEntry& entry = long_entries_[LongPlace(word)];
    entry.length = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(ids.size());
    std::memcpy(entry.bytes.data(), word.data(), word.size());
    std::memcpy(entry.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  static constexpr unsigned kShortBits = 15;
  static constexpr unsigned kLongBits = 12;
  static constexpr std::size_t kMaxLongBytes = 62;
  static constexpr std::size_t kMaxLongIds = 16;

  struct LongEntry {
    std::uint8_t length = 0;
    std::uint8_t count = 0;
    std::array<char, kMaxLongBytes> bytes;
    std::array<TokenId, kMaxLongIds> ids;
  };

  static std::size_t LongPlace(std::string_view word) {
    return base::HashBytes(word).low >> (64 - kLongBits);
  }

  std::vector<ShortEntry> short_entries_ = std::vector<ShortEntry>(std::size_t{1} << kShortBits);
  std::vector<LongEntry> long_entries_ = std::vector<LongEntry>(std::size_t{1} << kLongBits);
};

}  // namespace quail::text
