#include "columnar/layout.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "base/check.h"

namespace quail::columnar {
namespace {

template <typename T>
T ReadAs(const void* buffer, std::int64_t index) {
  T value;
  std::memcpy(&value,
              static_cast<const char*>(buffer) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

std::optional<std::int64_t> ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

Layout Integer(std::int64_t width, bool is_signed = true) {
  return {.kind = LayoutKind::kInteger, .is_signed = is_signed, .width = width};
}

Layout ParsePrimitive(char format) {
  switch (format) {
    case 'n':
      return {.kind = LayoutKind::kNull};
    case 'b':
      return {.kind = LayoutKind::kBoolean};
    case 'c':
      return Integer(1);
    case 'C':
      return Integer(1, false);
    case 's':
      return Integer(2);
    case 'S':
      return Integer(2, false);
    case 'i':
      return Integer(4);
    case 'I':
      return Integer(4, false);
    case 'l':
      return Integer(8);
    case 'L':
      return Integer(8, false);
    case 'e':
      return {.kind = LayoutKind::kFixed, .width = 2};
    case 'f':
      return {.kind = LayoutKind::kFloat, .width = 4};
    case 'g':
      return {.kind = LayoutKind::kFloat, .width = 8};
    case 'u':
      return {.kind = LayoutKind::kText, .is_utf8 = true};
    case 'z':
      return {.kind = LayoutKind::kText};
    case 'U':
      return {.kind = LayoutKind::kLargeText, .is_utf8 = true};
    case 'Z':
      return {.kind = LayoutKind::kLargeText};
    default:
      return {};
  }
}

/// "tdD", "ttu", "tsu:Europe/Berlin", "tDm", "tiM", ..
Layout ParseTemporal(std::string_view format) {
  const std::string_view unit = format.substr(0, 3);
  if (unit == "tdD" || unit == "tts" || unit == "ttm" || unit == "tiM") return Integer(4);
  if (unit == "tin") return {.kind = LayoutKind::kFixed, .width = 16};
  if (unit == "tdm" || unit == "ttu" || unit == "ttn" || unit == "tiD") return Integer(8);
  const bool has_unit = unit.size() == 3 && std::string_view("smun").find(unit[2]) != unit.npos;
  if (has_unit && (unit[1] == 's' || unit[1] == 'D')) return Integer(8);
  return {};
}

/// "d:precision,scale" and "d:precision,scale,bits".
Layout ParseDecimal(std::string_view digits) {
  const std::size_t comma = digits.find(',');
  if (comma == digits.npos) return {};
  std::string_view rest = digits.substr(comma + 1);
  std::int64_t bits = 128;
  if (const std::size_t second = rest.find(','); second != rest.npos) {
    bits = ParseNumber(rest.substr(second + 1)).value_or(0);
    rest = rest.substr(0, second);
  }
  const auto scale = ParseNumber(rest);
  const bool known_width = bits == 32 || bits == 64 || bits == 128 || bits == 256;
  if (!scale || *scale > 76 || !known_width) return {};
  return {.kind = LayoutKind::kDecimal, .width = bits / 8, .scale = static_cast<int>(*scale)};
}

Layout ParseNested(std::string_view format) {
  if (format == "+l" || format == "+m") return {.kind = LayoutKind::kList};
  if (format == "+L") return {.kind = LayoutKind::kLargeList};
  if (format == "+s") return {.kind = LayoutKind::kStruct};
  if (format.substr(0, 3) == "+w:") {
    const auto width = ParseNumber(format.substr(3));
    if (width) return {.kind = LayoutKind::kFixedList, .width = *width};
  }
  return {};
}

}  // namespace

Layout ParseLayout(std::string_view format) {
  if (format.size() == 1) return ParsePrimitive(format[0]);
  if (format == "vu") return {.kind = LayoutKind::kTextView, .is_utf8 = true, .width = 16};
  if (format == "vz") return {.kind = LayoutKind::kTextView, .width = 16};
  const std::string_view head = format.substr(0, 2);
  if (head == "w:") {
    const auto width = ParseNumber(format.substr(2));
    return width ? Layout{.kind = LayoutKind::kFixed, .width = *width} : Layout{};
  }
  if (head == "d:") return ParseDecimal(format.substr(2));
  if (format.substr(0, 1) == "t") return ParseTemporal(format);
  return ParseNested(format);
}

std::int64_t BufferCount(const Layout& layout) {
  switch (layout.kind) {
    case LayoutKind::kNull:
      return 0;
    case LayoutKind::kStruct:
    case LayoutKind::kFixedList:
      return 1;
    case LayoutKind::kBoolean:
    case LayoutKind::kInteger:
    case LayoutKind::kFloat:
    case LayoutKind::kDecimal:
    case LayoutKind::kFixed:
    case LayoutKind::kList:
    case LayoutKind::kLargeList:
      return 2;
    case LayoutKind::kText:
    case LayoutKind::kLargeText:
    case LayoutKind::kTextView:
      return 3;
    case LayoutKind::kOther:
      break;
  }
  QUAIL_CHECK_MSG(false, "no buffer count for an unknown layout");
  return 0;
}

std::int64_t ReadInteger(const void* buffer, const Layout& layout, std::int64_t index) {
  switch (layout.width) {
    case 1:
      return layout.is_signed ? ReadAs<std::int8_t>(buffer, index)
                              : ReadAs<std::uint8_t>(buffer, index);
    case 2:
      return layout.is_signed ? ReadAs<std::int16_t>(buffer, index)
                              : ReadAs<std::uint16_t>(buffer, index);
    case 4:
      return layout.is_signed ? static_cast<std::int64_t>(ReadAs<std::int32_t>(buffer, index))
                              : static_cast<std::int64_t>(ReadAs<std::uint32_t>(buffer, index));
    default:
      return ReadAs<std::int64_t>(buffer, index);
  }
}

bool IntegerOverflows(const Layout& layout, std::int64_t value) {
  return !layout.is_signed && layout.width == 8 && value < 0;
}

std::int64_t ReadOffset(const void* buffer, const Layout& layout, std::int64_t index) {
  const bool large = layout.kind == LayoutKind::kLargeText || layout.kind == LayoutKind::kLargeList;
  return large ? ReadAs<std::int64_t>(buffer, index) : ReadAs<std::int32_t>(buffer, index);
}

}  // namespace quail::columnar
