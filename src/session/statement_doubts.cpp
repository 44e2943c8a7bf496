#include "session/statement_doubts.h"

#include <fmt/format.h>

#include <cstddef>

namespace quail::session {
namespace {

/// So many different questions with one and the same margin are no chance.
constexpr std::uint64_t kFewestEqualMargins = 4;
/// Of so many forward passes the median says something.
constexpr std::size_t kFewestChunks = 8;

}  // namespace

std::string DoubtOfModel(std::uint64_t equal_margins) {
  if (equal_margins < kFewestEqualMargins) return "";
  return fmt::format(
      "all {} answers of the model are the same to the last bit: it does not read "
      "the texts, or its prompt layout does not fit",
      equal_margins);
}

std::string DoubtOfKvRoom(const infer::ForestCounters& counters,
                          const infer::ForestConfig& config) {
  const bool crowded = counters.evictions > 0 || 5 * counters.kv_peak_tokens > 4 * config.kv_tokens;
  if (!crowded || counters.chunk_sizes.size() < kFewestChunks) return "";
  const std::int32_t median = counters.MedianChunk();
  if (2 * median >= config.chunk_tokens) return "";
  return fmt::format(
      "forward passes were half empty, {} of {} tokens in the median: keys and "
      "values of {} tokens are little room for these texts (--kv-memory)",
      median, config.chunk_tokens, config.kv_tokens);
}

}  // namespace quail::session
