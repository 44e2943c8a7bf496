#include "session/planning_device.h"

#include "session/calibration.h"

namespace quail::session {

spec::DeviceSpec PlanningDevice(unsigned threads) {
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
