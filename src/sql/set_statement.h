#pragma once

#include <optional>

#include "sql/statement.h"
#include "sql/token_view.h"

namespace quail::sql {

/// SET, RESET and ALTER SESSION of the settings that are ours; nullopt: another statement. Throws
/// Error{kSyntax | kBind} with the place in `view.text`.
std::optional<Statement> ReadSetting(const TokenView& view);

}  // namespace quail::sql
