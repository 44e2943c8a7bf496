#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/evaluator.h"

namespace quail::exec {

/// What one step did (docs/sql.md, semantics 4). `asked`, `null_input`, `rows_in` and `rows_out`
/// count rows or pairs of rows; the others count evaluations, so that distinct = yes + no + null +
/// error.
struct StepCounters {
  std::size_t step = 0;             ///< index in the plan's steps
  std::string kind;                 ///< "filter", "join", "column"
  std::vector<std::string> tables;  ///< aliases
  std::string anchor;               ///< alias of a join's anchor
  std::uint64_t asked = 0;
  std::uint64_t distinct = 0;
  std::uint64_t yes = 0;
  std::uint64_t no = 0;
  std::uint64_t null = 0;
  std::uint64_t null_input = 0;
  std::uint64_t error = 0;
  std::uint64_t rows_in = 0;
  std::uint64_t rows_out = 0;
  std::uint64_t unjudged = 0;  ///< rows or pairs left over when the step stopped early
  std::optional<TokenCounters> tokens;
  double seconds = 0;
  std::map<std::string, std::uint64_t> error_rows;  ///< by reason: rows or pairs without verdict
  /// By reason: the calls of the plan that these are of. Of several a row may count more than once.
  std::map<std::string, std::set<std::uint32_t>> error_calls;
};

}  // namespace quail::exec
