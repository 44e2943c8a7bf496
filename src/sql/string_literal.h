#pragma once

#include <cstddef>
#include <string_view>

#include "sql/lexer.h"

namespace quail::sql {

/// How one literal is written, found from its first characters.
struct StringForm {
  std::size_t prefix = 0;      ///< characters before the first quote (r, R)
  std::string_view delimiter;  ///< what opens and closes it
  bool escapes = true;         ///< backslashes are read
  bool doubled_quotes = false;
};

/// Reads the literal that begins at `offset` of `text`. Throws Error{kSyntax}, Error{kUnfinished}.
Token ReadString(std::string_view text, std::size_t offset, const StringForm& form,
                 const DialectRules& rules);

}  // namespace quail::sql
