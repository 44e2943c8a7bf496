#pragma once

#include <string>
#include <string_view>

namespace quail::session {

/// A type of the engine, as DESCRIBE names it, with VARCHAR for what its Arrow arrays do not carry,
/// at any depth: BIT (its own bytes), TIME WITH TIME ZONE (no zone), VARIANT, and ENUM, which is a
/// dictionary, and the writer of files has none.
std::string TypeInArrow(std::string_view type);

}  // namespace quail::session
