#pragma once

#include "spec/device_spec.h"
#include "spec/model_spec.h"

namespace quail::session {

/// This computer as it was calibrated, else an order of magnitude.
spec::DeviceSpec PlanningDevice(unsigned threads);

/// The shape that statements without a model are planned for: the embedded default's.
spec::ModelSpec SpecWithoutModel();

}  // namespace quail::session
