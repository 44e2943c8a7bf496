#pragma once

#include "base/clock.h"

namespace quail::session {

/// Adds the time until it goes to a figure of the report.
class TimeInto {
 public:
  explicit TimeInto(double& seconds) : seconds_(seconds) {}
  ~TimeInto() { seconds_ += watch_.seconds(); }
  TimeInto(const TimeInto&) = delete;
  TimeInto& operator=(const TimeInto&) = delete;

 private:
  double& seconds_;
  base::Stopwatch watch_;
};

}  // namespace quail::session
