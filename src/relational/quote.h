#pragma once

#include <string>
#include <string_view>

namespace quail::relational {

/// A text as DuckDB's string literal: in single quotes, quotes doubled, nothing else escaped.
/// DuckDB has no backslash escapes in '..', so any text without NUL comes back as it is.
std::string QuoteText(std::string_view text);

/// A name as DuckDB's quoted identifier, whatever it holds.
std::string QuoteName(std::string_view name);

/// The same, but a plain lower-case word stays as it is.
std::string QuoteNameIfNeeded(std::string_view name);

}  // namespace quail::relational
