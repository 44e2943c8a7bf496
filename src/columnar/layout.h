#pragma once

#include <cstdint>
#include <string_view>

#include "columnar/arrow_c_data.h"

namespace quail::columnar {

/// How the values of an Arrow type lie in memory.
enum class LayoutKind : std::uint8_t {
  kNull,       ///< no buffers, every row null
  kBoolean,    ///< bits
  kInteger,    ///< also dates, times, timestamps
  kFloat,      ///< 4 or 8 bytes
  kDecimal,    ///< two's complement integer, value = integer / 10^scale
  kFixed,      ///< opaque values of a fixed width
  kText,       ///< 32-bit offsets and bytes
  kLargeText,  ///< 64-bit offsets and bytes
  kTextView,   ///< 16-byte views: inline up to 12 bytes, else (buffer, offset)
  kList,       ///< 32-bit offsets and one child; maps too
  kLargeList,  ///< 64-bit offsets and one child
  kFixedList,  ///< `width` elements a row, one child
  kStruct,
  kOther,  ///< unions, run ends, list views, unknown formats: carried, not read
};

struct Layout {
  LayoutKind kind = LayoutKind::kOther;
  bool is_signed = true;
  bool is_utf8 = false;    ///< text rather than bytes
  std::int64_t width = 0;  ///< bytes of a value; elements of a fixed list
  int scale = 0;           ///< of a decimal
};

/// The layout of a format string of the Arrow C data interface; kOther where it is unknown or
/// malformed.
Layout ParseLayout(std::string_view format);

/// Buffers that an array of this layout has at least. REQUIRES: kind != kOther.
std::int64_t BufferCount(const Layout& layout);

/// Value `index` (counted from the start of the buffer) of a kInteger buffer. Unsigned 64-bit
/// values beyond the range of int64 wrap; IntegerOverflows tells.
std::int64_t ReadInteger(const void* buffer, const Layout& layout, std::int64_t index);
bool IntegerOverflows(const Layout& layout, std::int64_t value);

/// Offset `index` of a kText, kLargeText, kList or kLargeList array's offsets buffer.
std::int64_t ReadOffset(const void* buffer, const Layout& layout, std::int64_t index);

/// Bit `index`, least significant bit first.
inline bool ReadBit(const void* bits, std::int64_t index) {
  return ((static_cast<const std::uint8_t*>(bits)[index / 8] >> (index % 8)) & 1U) != 0;
}

}  // namespace quail::columnar
