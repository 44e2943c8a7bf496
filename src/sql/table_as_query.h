#pragma once

#include <cstddef>
#include <optional>

#include "sql/lexer.h"
#include "sql/statement.h"
#include "sql/token_view.h"
#include "sql/translation.h"

/// Statements that name a table where a query may stand, read with the query SELECT .. FROM that
/// table. All give nullopt for other statements and throw as ReadStatement.
namespace quail::sql {

Translation TranslateTokens(const TokenView& view, std::size_t begin, std::size_t end,
                            const DialectRules& rules);

/// The file of a COPY, or the folder where options make more than one.
void ReadCopyFile(const TokenView& view, std::size_t from, Statement& statement);

/// COPY name TO and COPY name (columns) TO as COPY (SELECT columns FROM name) TO.
std::optional<Statement> ReadCopyOfTable(const TokenView& view, const DialectRules& rules);

/// SUMMARIZE name as SUMMARIZE SELECT * FROM name.
std::optional<Statement> ReadSummaryOfTable(const TokenView& view, const DialectRules& rules);

/// MERGE INTO .. USING name ON .. as MERGE INTO .. USING (SELECT * FROM name) AS name ON .., also
/// behind a WITH that the name may be of. nullopt if an AI call stands elsewhere in it.
std::optional<Statement> ReadMergeOfTable(const TokenView& view, const DialectRules& rules);

}  // namespace quail::sql
