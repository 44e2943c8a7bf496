#include "sql/source_map.h"

#include <algorithm>

#include "base/check.h"

namespace quail::sql {

void SourceMap::Add(std::size_t output, std::size_t input, bool follows) {
  if (!entries_.empty()) {
    Entry& last = entries_.back();
    QUAIL_DCHECK(last.output <= output);
    if (follows && last.follows && input - last.input == output - last.output) return;
    if (last.output == output) {
      last = {output, input, follows};
      return;
    }
  }
  entries_.push_back({output, input, follows});
}

void SourceMap::Append(std::size_t output, const SourceMap& other) {
  for (const Entry& entry : other.entries_) Add(output + entry.output, entry.input, entry.follows);
}

std::size_t SourceMap::ToInput(std::size_t output) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), output,
                       [](std::size_t at, const Entry& entry) { return at < entry.output; });
  QUAIL_CHECK(after != entries_.begin());
  const Entry& entry = *(after - 1);
  return entry.follows ? entry.input + (output - entry.output) : entry.input;
}

}  // namespace quail::sql
