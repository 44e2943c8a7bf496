#include "session/argument_statistics.h"

#include <algorithm>
#include <cstdint>

namespace quail::session {
namespace {

/// Bytes of English text a token, where no tokenizer counts them.
constexpr double kBytesPerToken = 4;

}  // namespace

std::vector<base::TextId> TextsOf(const exec::Domain& domain) {
  std::vector<base::TextId> ids;
  for (const base::TextId id : domain.ids) {
    if (id != exec::kNullText) ids.push_back(id);
  }
  return ids;
}

plan::ArgumentStatistics StatisticsOf(const exec::Domain& domain, const text::TextStore& texts) {
  plan::ArgumentStatistics statistics;
  statistics.rows = domain.total_weight();
  for (std::size_t i = 0; i < domain.size(); ++i) {
    if (domain.ids[i] == exec::kNullText) {
      statistics.nulls += domain.weights[i];
      continue;
    }
    const base::TextId id = domain.ids[i];
    ++statistics.distinct;
    double tokens = 0;
    if (texts.status(id) == text::TextStatus::kReady) {
      tokens = static_cast<double>(texts.tokens(id).size());
    } else {
      tokens = static_cast<double>(texts.text(id).size()) / kBytesPerToken;
      statistics.estimated = true;
    }
    statistics.sum_tokens += tokens;
    statistics.sum_squared_tokens += tokens * tokens;
    statistics.max_tokens = std::max(statistics.max_tokens, static_cast<std::uint64_t>(tokens));
  }
  if (statistics.distinct > 0) {
    statistics.mean_tokens = statistics.sum_tokens / static_cast<double>(statistics.distinct);
  }
  return statistics;
}

}  // namespace quail::session
