#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace quail::quailb {

/// A table of texts: a head, then a line a query.
struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  std::string Tsv() const;
  std::string Markdown() const;
};

/// A line a result (the JSON of RunFolder), with the columns of docs/benchmarks.md; "-" is what was
/// not measured. `hourly_price` in dollars, 0: not given.
TextTable ResultTable(std::span<const nlohmann::ordered_json> results, double hourly_price);
/// A line a plan: what it expects.
TextTable PlanTable(std::span<const nlohmann::ordered_json> plans);

}  // namespace quail::quailb
