#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quail/dialect.h"

namespace quail::sql {

/// How a dialect writes strings, identifiers and comments. Read by the lexer and the translation.
struct DialectRules {
  std::optional<Dialect> dialect;  ///< nullopt: the relational engine's own SQL
  std::string_view name;
  bool double_quoted_strings = false;  ///< else ".." is an identifier
  bool backtick_identifiers = false;
  bool plain_strings = false;   ///< a backslash in '..' is itself; E'..' has escapes
  bool doubled_quotes = false;  ///< '' inside '..' is a quote; else an error that names \'
  bool strict_escapes = false;  ///< an unknown \c is an error; else it is c
  bool triple_quotes = false;
  bool raw_strings = false;         ///< r'..', R".."
  bool dollar_quotes = false;       ///< $$..$$
  bool slash_comments = false;      ///< // to the end of the line
  bool hash_comments = false;       ///< # to the end of the line
  bool words_after_dots = false;    ///< any word after a dot is a name, reserved or not
  bool struct_constructor = false;  ///< STRUCT(x AS a, ..)
  bool printf_format = false;       ///< FORMAT takes patterns as C's printf does
  bool star_except = false;         ///< SELECT * EXCEPT (..)
  bool named_slots = false;         ///< PROMPT('{table.column} ..')
  bool path_access = false;         ///< f(..):name[0]
  bool cortex_prefix = false;       ///< SNOWFLAKE.CORTEX.f(..)
  std::string_view
      simple_escapes;  ///< pairs: the character after the backslash, what it stands for
};

const DialectRules& RulesOf(Dialect dialect);
/// Of the relational engine's SQL as Translate writes it and as the engine prints it, which has no
/// comments and no strings between dollars.
const DialectRules& EngineRules();

}  // namespace quail::sql
