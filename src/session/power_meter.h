#pragma once

#include <optional>

#include "infer/backend.h"
#include "session/report.h"

namespace quail::session {

/// What a device used between two readings of it. Energy counters move in steps of up to 100 ms:
/// `joules` is left out of spans under a second.
RunReport::Power PowerBetween(const infer::DeviceUsage& before, const infer::DeviceUsage& after,
                              double seconds);

}  // namespace quail::session
