#include "session/power_meter.h"

#include <algorithm>
#include <span>
#include <vector>

namespace quail::session {
namespace {

constexpr double kLeastSeconds = 1;

std::optional<RunReport::Power::Range> RangeOf(std::span<const infer::DeviceSample> samples,
                                               double infer::DeviceSample::*member) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> values;
  for (const infer::DeviceSample& sample : samples) values.push_back(sample.*member);
  std::ranges::sort(values);
  return RunReport::Power::Range{values[values.size() / 2], values.front()};
}

}  // namespace

RunReport::Power PowerBetween(const infer::DeviceUsage& before, const infer::DeviceUsage& after,
                              double seconds) {
  RunReport::Power power;
  if (before.joules && after.joules && seconds >= kLeastSeconds) {
    power.joules = *after.joules - *before.joules;
  }
  const auto added = std::span(after.samples).subspan(before.samples.size());
  power.megahertz = RangeOf(added, &infer::DeviceSample::megahertz);
  power.watts = RangeOf(added, &infer::DeviceSample::watts);
  return power;
}

}  // namespace quail::session
