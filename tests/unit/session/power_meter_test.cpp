#include "session/power_meter.h"

#include <gtest/gtest.h>

namespace quail::session {
namespace {

infer::DeviceUsage Usage(double joules, std::vector<infer::DeviceSample> samples) {
  infer::DeviceUsage usage;
  usage.joules = joules;
  usage.samples = std::move(samples);
  return usage;
}

TEST(PowerMeter, OnlyWhatIsBetweenTheReadingsCounts) {
  const auto before = Usage(1000, {{100, 1}, {200, 2}});
  const auto after = Usage(1700, {{100, 1}, {200, 2}, {1500, 690}, {1600, 650}, {1400, 695}});
  const RunReport::Power power = PowerBetween(before, after, 2);
  EXPECT_EQ(power.joules, 700);
  EXPECT_EQ(power.megahertz->median, 1500);
  EXPECT_EQ(power.megahertz->least, 1400);
  EXPECT_EQ(power.watts->median, 690);
  EXPECT_EQ(power.watts->least, 650);
}

TEST(PowerMeter, WhatCannotBeMeasuredIsAbsent) {
  const RunReport::Power none = PowerBetween({}, {}, 5);
  EXPECT_FALSE(none.joules || none.megahertz || none.watts);
  // The energy counter is too coarse for a short statement.
  EXPECT_FALSE(PowerBetween(Usage(10, {}), Usage(20, {}), 0.3).joules);
}

}  // namespace
}  // namespace quail::session
