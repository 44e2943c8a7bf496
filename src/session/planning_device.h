#pragma once

#include "infer/backend.h"
#include "spec/device_spec.h"
#include "spec/model_spec.h"

namespace quail::session {

/// What plans are priced for: the data sheet's row of the GPU behind `backend` (an H100's where the
/// table has none of its name, and for the counting backend), else this computer as it was
/// calibrated, else an order of magnitude. `backend` is null where an oracle answers. Throws what
/// ReadCalibration does.
spec::DeviceSpec PlanningDevice(const infer::BackendInfo* backend, unsigned threads);

/// The shape that statements without a model are planned for: the embedded default's.
spec::ModelSpec SpecWithoutModel();

}  // namespace quail::session
