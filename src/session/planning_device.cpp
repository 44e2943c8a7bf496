#include "session/planning_device.h"

#include "session/calibration.h"

namespace quail::session {

spec::DeviceSpec PlanningDevice(const infer::BackendInfo* backend, unsigned threads) {
  if (backend != nullptr && backend->backend == "cuda") {
    const spec::DeviceSpec* known = spec::FindDevice(backend->device);
    spec::DeviceSpec device = known != nullptr ? *known : *spec::FindDevice("H100");
    if (known == nullptr) device.name = backend->device + " (priced as an H100)";
    return device;
  }
  // It stands for the GPU of the published runs.
  if (backend != nullptr && backend->backend == "counting") return *spec::FindDevice("H100");
  const auto calibrated = ReadCalibration();
  return calibrated ? *calibrated : spec::UncalibratedCpu(threads);
}

spec::ModelSpec SpecWithoutModel() {
  spec::ModelSpec model;
  model.name = "no model";
  model.layers = 30;
  model.hidden = 576;
  model.heads = 9;
  model.kv_heads = 3;
  model.head_dim = 64;
  model.ffn = 1536;
  model.vocabulary = 49152;
  model.context = 8192;
  model.tied_head = true;
  return model;
}

}  // namespace quail::session
