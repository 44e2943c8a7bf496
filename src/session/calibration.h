#pragma once

#include <filesystem>
#include <optional>

#include "spec/device_spec.h"

namespace quail::session {

/// ${XDG_CACHE_HOME:-~/.cache}/quail/device.json.
std::filesystem::path CalibrationPath();

/// Measures this computer with `threads` threads (0: all cores) and keeps its row in
/// CalibrationPath.
spec::DeviceSpec MeasureComputer(unsigned threads);

/// The row that was kept; nothing where there is none. Throws Error{kCorrupt} where it is
/// unreadable.
std::optional<spec::DeviceSpec> ReadCalibration();

}  // namespace quail::session
