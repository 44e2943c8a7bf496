#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sql/statement.h"
#include "sql/token_view.h"

namespace quail::sql {

/// Where a statement's query begins and ends, as token indexes.
struct Cut {
  StatementKind kind = StatementKind::kOther;
  std::size_t dropped = 0;  ///< tokens in front that are not passed on (EXPLAIN ..)
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t ctes_end = 0;  ///< tokens in front, a WITH, that go in front of the query
};

/// How many of the last tokens are WITH DATA or WITH NO DATA.
std::size_t DataWords(const TokenView& view);

/// The end of the parentheses that open at i; i where none do.
std::size_t PastParentheses(const TokenView& view, std::size_t i);

/// A WITH at the beginning of a statement, as token indexes.
struct Ctes {
  std::size_t end = 0;  ///< behind the last; 0: there is no WITH
  std::vector<std::size_t> names;
};
Ctes ReadCtes(const TokenView& view);

/// The place behind the CTEs of a WITH at the beginning; 0 where none is.
std::size_t PastCtes(const TokenView& view);

/// WITH before a statement that changes something; nullopt: no such statement.
std::optional<Cut> CutBehindCtes(const TokenView& view);

Cut CutStatement(const TokenView& view);

}  // namespace quail::sql
