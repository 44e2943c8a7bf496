#include "text/utf8.h"

#include <cstdint>

#include "text/unicode.h"

namespace quail::text {
namespace {

/// Bytes of the well-formed sequence at `p`, whose lead is not ASCII; 0 where it is ill-formed
/// (Unicode, table 3-7).
unsigned SequenceLength(const unsigned char* p, std::size_t left) {
  const unsigned char lead = p[0];
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const unsigned length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (left < length) return 0;
  unsigned char lowest = 0x80;
  unsigned char highest = 0xBF;
  if (lead == 0xE0) lowest = 0xA0;
  if (lead == 0xED) highest = 0x9F;
  if (lead == 0xF0) lowest = 0x90;
  if (lead == 0xF4) highest = 0x8F;
  if (p[1] < lowest || p[1] > highest) return 0;
  for (unsigned i = 2; i < length; ++i) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::size_t SkipAscii(const char* p, std::size_t i, std::size_t size) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  while (i + 8 <= size) {
    std::uint64_t word;
    std::memcpy(&word, p + i, 8);
    if ((word & kHighBits) != 0) break;
    i += 8;
  }
  while (i < size && static_cast<unsigned char>(p[i]) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Scan ScanUtf8(std::string_view text) {
  Utf8Scan scan;
  const char* p = text.data();
  for (std::size_t i = 0; (i = SkipAscii(p, i, text.size())) < text.size();) {
    const unsigned length =
        SequenceLength(reinterpret_cast<const unsigned char*>(p) + i, text.size() - i);
    if (length == 0) {
      scan.bad_offset = i;
      return scan;
    }
    const char32_t point = DecodeUtf8(p + i).value;
    constexpr unsigned kNfcBits = unicode::kMark | unicode::kNfcMaybe;
    // No code point below U+0300 changes under NFC by itself, or composes with one before it.
    if (point >= 0x300 && (unicode::Properties(point) & kNfcBits) != 0) {
      scan.may_need_nfc = true;
    }
    i += length;
  }
  return scan;
}

void AppendUtf8(char32_t point, std::string& out) {
  const auto continuation = [point](int shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3F));
  };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | (point >> 6));
    out += continuation(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | (point >> 12));
    out += continuation(6);
    out += continuation(0);
  } else {
    out += static_cast<char>(0xF0 | (point >> 18));
    out += continuation(12);
    out += continuation(6);
    out += continuation(0);
  }
}

}  // namespace quail::text
