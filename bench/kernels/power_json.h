#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "infer/backend.h"

/// Clock and power over the samples taken between two readings, and the energy, as JSON.
inline std::string PowerJson(const quail::infer::DeviceUsage& before,
                             const quail::infer::DeviceUsage& after, std::uint64_t fresh) {
  std::vector<double> megahertz, watts;
  for (std::size_t i = before.samples.size(); i < after.samples.size(); ++i) {
    megahertz.push_back(after.samples[i].megahertz);
    watts.push_back(after.samples[i].watts);
  }
  if (megahertz.empty() || !before.joules || !after.joules) return "null";
  std::ranges::sort(megahertz);
  std::ranges::sort(watts);
  const double joules = *after.joules - *before.joules;
  return fmt::format(
      R"({{"clock_mhz_median": {}, "clock_mhz_min": {}, "watts_median": {}, "watts_min": {}, )"
      R"("joules_per_fresh_token": {:.6f}}})",
      megahertz[megahertz.size() / 2], megahertz.front(), watts[watts.size() / 2], watts.front(),
      joules / static_cast<double>(fresh));
}
