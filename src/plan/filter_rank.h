#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace quail::plan {

/// What the order of a document's filters depends on.
struct RankedFilter {
  double first_seconds = 0;  ///< with the document's own computation
  double ask_seconds = 0;    ///< over a document whose KV is held
  double pass_rate = 0;      ///< of the documents that reach it, in [0, 1]
};

/// The order with the least expected seconds a document: every filter is tried as the first, the
/// others follow by ask_seconds / (1 - pass_rate), the rank of Hellerstein and Stonebraker
/// ("Predicate Migration", SIGMOD 1993) with the ask's cost over resident KV; a filter that rejects
/// nothing ranks last. Ties keep the given order.
std::vector<std::size_t> RankFilters(std::span<const RankedFilter> filters);

/// Expected seconds a document of asking in that order.
double ExpectedSeconds(std::span<const RankedFilter> filters, std::span<const std::size_t> order);

}  // namespace quail::plan
