#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quail/config.h"

namespace quail::quailb {

struct SuiteRunOptions {
  std::string suite = "quailb";
  std::string data;                ///< a folder that GenerateSuite wrote
  std::string scale;               ///< that it must have; empty: any
  std::vector<std::string> only;   ///< queries; empty: all
  std::string slice;               ///< "2/5": the second of five parts of them; empty: all
  std::string answers = "flow4b";  ///< planted: truth, flow4b; none: what the model answers
  std::string layout = "own";      ///< own, published
  bool hints = true;               ///< the planner is told the suite's pass rates
  bool plan_only = false;          ///< prints what the plans expect, runs nothing
  bool resume = false;             ///< keeps the results that `output` has already
  double hourly_price = 0;         ///< of the device, in dollars; 0: no cost is given
  std::string output;              ///< folder of the results
  Config config;                   ///< model, backend, memory
  std::function<void(std::string_view)> on_line;  ///< told what happens, a line at a time
};

/// Runs queries of the suite through the whole product and writes into `output`: the run report of
/// each (NAME.json, with the settings of the run), results.tsv and results.md; with `plan_only`
/// plans.tsv and plans.md. Throws Error{kUsage} for unknown names and for an output of other
/// settings, Error{kIo | kCorrupt} for data that is not whole, and what a query throws, named; what
/// was finished before stays.
void RunSuite(const SuiteRunOptions& options);

}  // namespace quail::quailb
