#pragma once

#include <string_view>

namespace quail::quailb {

/// The files of the suite that the program carries: queries/NAME.sql and hints.json. Empty for an
/// unknown query.
std::string_view QueryText(std::string_view query);
std::string_view HintsText();

}  // namespace quail::quailb
