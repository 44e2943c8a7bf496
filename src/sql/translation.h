#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sql/lexer.h"
#include "sql/source_map.h"

namespace quail::sql {

/// SQL as the relational engine's parser reads it, with the way back to the user's text.
struct Translation {
  std::string sql;
  SourceMap map;  ///< to offsets in the text that the tokens were cut from
  bool has_ai = false;
  std::size_t first_ai = 0;  ///< offset of the first AI call in the user's text, if has_ai
};

/// Rewrites `tokens` (without kEnd) of `text` from a dialect into the relational engine's SQL:
/// every string as a plain
/// '..', comments dropped, backticks as "..", AI.x( as ai_x(, and the dialect's own forms
/// (DialectRules). Throws Error{kSyntax | kBind | kUnsupported}, position in `text`: unknown AI
/// functions, a text in double quotes where the dialect has names there.
Translation Translate(std::string_view text, std::span<const Token> tokens,
                      const DialectRules& rules);

}  // namespace quail::sql
