#pragma once

#include <string_view>

namespace quail::columnar {

/// A column of type TOKENS (docs/sql.md): a list of token ids, wrapped so that a subquery or a copy
/// keeps the type and no text function takes it. As the relational engine prints it.
inline constexpr std::string_view kTokensType = "STRUCT(tokens INTEGER[])";
inline constexpr std::string_view kTokensMember = "tokens";
/// Key of a Parquet file's metadata whose value names its TOKENS columns, one a line; they are
/// stored as plain lists.
inline constexpr std::string_view kTokensKey = "quail_tokens";

}  // namespace quail::columnar
