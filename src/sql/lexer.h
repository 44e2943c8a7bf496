#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sql/dialect.h"

namespace quail::sql {

enum class TokenKind : std::uint8_t {
  kWord,        ///< a keyword or a bare name
  kIdentifier,  ///< a quoted name; `value` without quotes
  kString,      ///< a literal; `value` decoded
  kNumber,
  kParameter,  ///< ?, $1, $name
  kSymbol,
  kSemicolon,
  kEnd,  ///< always the last; empty, at the end of the text
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::size_t offset = 0;  ///< bytes in the text
  std::size_t size = 0;    ///< bytes of its spelling
  std::string value;       ///< decoded text of kString and kIdentifier; SQL of kParameter's value
  /// Byte k of `value` was read at origins[k] of the text (kString of dialects with named slots
  /// only).
  std::vector<std::size_t> origins;
};

/// Cuts a text from byte `begin` on into tokens by the dialect's rules; white space and comments
/// lie between them. Offsets count from the beginning of `text`. Throws Error{kSyntax} with the
/// position of what is wrong, a bad escape, a NUL byte, a byte that is not UTF-8, or
/// Error{kUnfinished} with that of a string, comment or name that does not end.
std::vector<Token> Lex(std::string_view text, const DialectRules& rules, std::size_t begin = 0);

/// The spelling of a token.
inline std::string_view Spelling(std::string_view text, const Token& token) {
  return text.substr(token.offset, token.size);
}

/// Bytes of the white space that begins at `at`, the Unicode spaces and the byte order mark that
/// DuckDB skips included; 0: there is none.
std::size_t SpaceSize(std::string_view text, std::size_t at);

/// ASCII comparison without case.
bool SameWord(std::string_view a, std::string_view b);
std::string LowerCase(std::string_view text);
std::string UpperCase(std::string_view text);

/// '..' with quotes doubled, ".." likewise: literals and names as the relational engine reads them.
std::string QuoteString(std::string_view value);
std::string QuoteIdentifier(std::string_view name);

}  // namespace quail::sql
