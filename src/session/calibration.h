#pragma once

#include <optional>

#include "quail/machine.h"

namespace quail::session {

/// What `quail calibrate` has written, if it has and the file can be read.
std::optional<Calibration> ReadCalibration();

}  // namespace quail::session
