#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace quail::columnar {

/// Offset of the first byte that does not belong to well-formed UTF-8 (Unicode 15, table 3-7: no
/// overlong forms, no surrogates, nothing above U+10FFFF); nullopt when all is well-formed.
std::optional<std::size_t> FirstInvalidUtf8(std::string_view text);

}  // namespace quail::columnar
