#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace quail::base {

/// Index of the first byte at or after `at` that is not ASCII; the size when there is none.
std::size_t SkipAscii(std::string_view text, std::size_t at);

/// Bytes of the well-formed sequence at `at`; 0 when it is ill-formed (Unicode 15, table 3-7: no
/// overlong forms, no surrogates, nothing above U+10FFFF). REQUIRES: at < text.size().
unsigned Utf8SequenceLength(std::string_view text, std::size_t at);

/// Offset of the first byte that does not belong to well-formed UTF-8; nullopt when all is
/// well-formed.
std::optional<std::size_t> FirstInvalidUtf8(std::string_view text);

/// The text with \xNN for control characters and bytes that are not well-formed UTF-8: to show what
/// a file has.
std::string Escaped(std::string_view text);

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

}  // namespace quail::base
