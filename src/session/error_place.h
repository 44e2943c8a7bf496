#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "plan/catalog.h"
#include "quail/config.h"
#include "quail/error.h"
#include "quail/session.h"

namespace quail::session {

/// An error of a statement with a place in the script: its own; else that of the first name or text
/// of the statement that its message quotes; else where the statement begins. What no text can be
/// blamed for (model, device, memory, an interrupt) stays without one.
Error WithPlace(const Error& error, std::string_view script, const Session::Statement& statement,
                Dialect dialect);

/// Where in `query` the text constant stands that the engine could not cast to the type of what it
/// is compared with. Beside casts in the query it may be a text of the data.
std::optional<std::size_t> OffsetOfConstant(const Error& error, const std::string& query,
                                            plan::Catalog& catalog);

}  // namespace quail::session
