#pragma once

#include <string>
#include <string_view>

namespace quail::text {

/// Unicode normalisation form C (UAX #15), by the data of Unicode 9.0 as in HF `tokenizers`.
/// REQUIRES: well-formed UTF-8. Linear in the text but for sorting marks of one base.
std::string ToNfc(std::string_view text);

/// The quick check of UAX #15 section 9: true means that ToNfc would change nothing; false that it
/// may.
bool QuickCheckNfc(std::string_view text);

}  // namespace quail::text
