#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sql/lexer.h"

namespace quail::sql {

/// Tokens of a statement with their text, and questions about them.
struct TokenView {
  std::string_view text;
  std::span<const Token> tokens;

  bool WordAt(std::size_t i, std::string_view word) const {
    return i < tokens.size() && tokens[i].kind == TokenKind::kWord &&
           SameWord(Spelling(text, tokens[i]), word);
  }
  bool SymbolAt(std::size_t i, std::string_view symbol) const {
    return i < tokens.size() && tokens[i].kind == TokenKind::kSymbol &&
           Spelling(text, tokens[i]) == symbol;
  }
  bool NameAt(std::size_t i) const {
    return i < tokens.size() &&
           (tokens[i].kind == TokenKind::kWord || tokens[i].kind == TokenKind::kIdentifier);
  }
  /// The decoded name of a NameAt.
  std::string Name(std::size_t i) const {
    return tokens[i].kind == TokenKind::kIdentifier ? tokens[i].value
                                                    : std::string(Spelling(text, tokens[i]));
  }
  bool QueryBeginsAt(std::size_t i) const {
    constexpr std::array<std::string_view, 4> kQueryWords = {"SELECT", "WITH", "FROM", "VALUES"};
    return SymbolAt(i, "(") || std::any_of(kQueryWords.begin(), kQueryWords.end(),
                                           [&](std::string_view word) { return WordAt(i, word); });
  }
  /// Depth-0 positions only: the first i >= from where `found(i)`.
  template <typename Predicate>
  std::optional<std::size_t> FindAtTop(std::size_t from, Predicate found) const {
    std::size_t depth = 0;
    for (std::size_t i = from; i < tokens.size(); ++i) {
      if (depth == 0 && found(i)) return i;
      if (SymbolAt(i, "(") || SymbolAt(i, "[") || SymbolAt(i, "{")) ++depth;
      const bool closed = SymbolAt(i, ")") || SymbolAt(i, "]") || SymbolAt(i, "}");
      if (closed && depth > 0) --depth;
    }
    return std::nullopt;
  }
};

}  // namespace quail::sql
