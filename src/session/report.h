#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/step_counters.h"
#include "plan/physical.h"
#include "quail/config.h"
#include "quail/error.h"

namespace quail::session {

/// The run report of one statement (docs/cli.md): what is not set was not measured and is absent.
struct RunReport {
  struct Model {
    std::string name;
    std::string path;
    std::string hash;
    std::int64_t parameters = 0;
    std::string weight_type;
    std::string weights;  ///< "random, seed 0"; empty: those of the file
  };
  struct Device {
    std::string name;
    std::string backend;
    std::int32_t threads = 0;
    std::int64_t memory_bytes = 0;
    std::string compute_type;  ///< of products
    std::string fp8_scales;    ///< empty: as computed
  };
  /// What a device used while the statement's steps ran.
  struct Power {
    struct Range {
      double median = 0;
      double least = 0;
    };
    std::optional<double> joules;
    std::optional<Range> megahertz;
    std::optional<Range> watts;
  };
  struct Chunks {
    std::uint64_t count = 0;
    std::int64_t median_tokens = 0;
    std::int64_t max_tokens = 0;
  };
  struct Kv {
    std::int64_t capacity_tokens = 0;
    std::int64_t peak_tokens = 0;
    std::uint64_t evictions = 0;
    std::uint64_t recomputed_tokens = 0;
  };
  struct Step {
    std::string name;
    exec::StepCounters counters;
    std::optional<plan::StepEstimate> estimate;
    std::optional<double> hint;
    std::optional<double> roofline_seconds;
  };
  /// A failed evaluation's reason: in how many distinct calls, standing for how many rows.
  struct Failure {
    std::string reason;
    std::uint64_t count = 0;
    std::uint64_t rows = 0;
  };

  std::string query;
  std::string dialect;
  std::uint64_t seed = 0;
  std::string started_at;  ///< UTC, ISO 8601
  std::optional<Model> model;
  std::optional<Device> device;
  std::map<std::string, double> seconds;
  std::optional<std::uint64_t> rows;
  std::vector<Failure> failures;
  std::optional<std::uint64_t> minimum_tokens;
  std::optional<std::uint64_t> sorted_minimum_tokens;  ///< counted by sorting the asked paths
  std::string planted_answers;  ///< the set that stands in for the model's answers; empty: none
  std::optional<std::uint64_t> pairs;
  std::optional<double> roofline_seconds;
  std::optional<Chunks> chunks;
  std::optional<Kv> kv;
  std::optional<std::int64_t> device_peak_bytes;
  std::optional<Power> power;
  std::vector<Step> steps;
  std::vector<std::string> notices;
  std::optional<std::string> error_message;
  std::optional<TextPosition> error_position;

  std::string ToJson() const;
};

/// Now in UTC as ISO 8601.
std::string IsoTime();

}  // namespace quail::session
