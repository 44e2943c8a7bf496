#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace quail::text {

struct Utf8Scan {
  std::optional<std::size_t>
      bad_offset;             ///< of the first byte that is not part of a well-formed sequence
  bool may_need_nfc = false;  ///< some code point is a kMark or kNfcMaybe
};

/// Reads `text` once. Surrogates, overlong forms and values above U+10FFFF are ill-formed.
Utf8Scan ScanUtf8(std::string_view text);

struct CodePoint {
  char32_t value;
  unsigned length;  ///< in bytes
};

/// The code point at `p`. REQUIRES: well-formed UTF-8.
inline CodePoint DecodeUtf8(const char* p) {
  const auto byte = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {((lead & 0x1F) << 6) | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) {
    return {((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F), 3};
  }
  return {
      ((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F),
      4};
}

/// REQUIRES: point is a Unicode scalar value.
void AppendUtf8(char32_t point, std::string& out);

}  // namespace quail::text
