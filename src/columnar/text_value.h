#pragma once

#include <cstdint>
#include <string_view>

#include "columnar/arrow_c_data.h"
#include "columnar/layout.h"

namespace quail::columnar {

/// Longest text that a view holds itself.
inline constexpr std::int32_t kInlineTextLength = 12;

/// An element of a view array (Arrow columnar format, "Variable-size Binary View Layout").
struct TextView {
  std::int32_t length = 0;
  std::int32_t block = 0;   ///< data buffer; only where length > kInlineTextLength
  std::int32_t offset = 0;  ///< into that buffer
};

TextView ReadTextView(const ArrowArray& array, std::int64_t index);

/// Whether the value at `index` (from the start of the buffers, the array's own offset included) is
/// not null.
bool IsValid(const ArrowArray& array, std::int64_t index);

/// The bytes of a valid value of a kText, kLargeText or kTextView array; `index` as in IsValid.
std::string_view ReadText(const ArrowArray& array, const Layout& layout, std::int64_t index);

}  // namespace quail::columnar
