#pragma once

#include <optional>

#include "sql/lexer.h"
#include "sql/statement.h"
#include "sql/token_view.h"

namespace quail::sql {

/// UPDATE and DELETE with AI calls as a query and what is done with its rows: `before` + `query`
/// keeps the new values by row id, `then` writes them. nullopt for other statements. Throws
/// Error{kSyntax | kBind | kUnsupported} with the place in `view.text`.
std::optional<Statement> ReadChange(const TokenView& view, const DialectRules& rules);

}  // namespace quail::sql
