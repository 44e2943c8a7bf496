#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plan/physical.h"

namespace quail::plan {

/// Pairs that the planned calls about two tables will be asked of, as estimated.
double PlannedPairs(const PhysicalPlan& plan);

/// What EXPLAIN says above the steps.
struct ExplainHead {
  std::string model;    ///< "SmolLM2-135M-Instruct", "oracle"
  std::string device;   ///< "H100", "CPU, 8 threads"
  std::string answers;  ///< the words of the readout, "TRUE / FALSE"; empty without a model
  std::optional<std::uint64_t> max_pairs;
  /// Why no bound can be given, "not calibrated"; empty: the roofline seconds are one.
  std::string no_light = {};
};

/// What a step did (EXPLAIN ANALYZE); zeros for steps that ask nothing.
struct StepActual {
  std::uint64_t asked = 0;
  std::uint64_t distinct = 0;
  std::uint64_t yes = 0;
  std::uint64_t no = 0;
  std::uint64_t null = 0;
  std::uint64_t error = 0;
  double fresh_tokens = 0;
  double minimum_tokens = 0;
  double seconds = 0;
  double roofline_seconds = 0;
};

/// The plan as text: a head, then a line a step in aligned columns, under it what is asked and why
/// so; at most 120 columns wide. `actual` is empty, or one a step: actual figures stand beside the
/// estimates.
std::string ExplainText(const PhysicalPlan& plan, const ExplainHead& head,
                        std::span<const StepActual> actual = {});
/// The same as JSON: {model, device, total {..}, steps [{..}], notices}.
std::string ExplainJson(const PhysicalPlan& plan, const ExplainHead& head,
                        std::span<const StepActual> actual = {});

}  // namespace quail::plan
