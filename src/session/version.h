#pragma once

namespace quail::session {

inline constexpr const char* kVersion = QUAIL_VERSION;

}  // namespace quail::session
