#include "exec/stop_waves.h"

#include <algorithm>
#include <iterator>

namespace quail::exec {

StopWaves::StopWaves(const OnDemandReads::StopRows& rows, std::uint32_t wave)
    : wave_(std::max(1U, wave)) {
  for (const auto& [row, reads] : rows) {
    if (reads.met || reads.undecided.empty()) continue;
    const auto& tuples = reads.undecided.begin()->second;
    rows_.push_back({{tuples.begin(), tuples.end()}, 0});
  }
}

std::set<std::vector<TextId>> StopWaves::Next(const Meets& meets) {
  std::set<std::vector<TextId>> asked;
  std::erase_if(rows_, [&](Row& row) {
    std::size_t open = 0;
    for (std::size_t i = row.judged; i < row.tuples.size() && open < wave_; ++i) {
      const auto met = meets(row.tuples[i]);
      if (met && *met) return true;
      if (!met) {
        asked.insert(row.tuples[i]);
        ++open;
      } else if (open == 0) {
        row.judged = i + 1;
      }
    }
    return open == 0;
  });
  wave_ *= 2;
  return asked;
}

TuplesByCall NextOfEach(const OnDemandReads::StopRows& rows, std::uint32_t wave) {
  TuplesByCall asked;
  for (const auto& [row, reads] : rows) {
    if (reads.met || reads.undecided.empty()) continue;
    const auto& [call, tuples] = *reads.undecided.rbegin();
    const std::size_t count = std::min<std::size_t>(tuples.size(), std::max(1U, wave));
    asked[call].insert(tuples.begin(),
                       std::next(tuples.begin(), static_cast<std::ptrdiff_t>(count)));
  }
  return asked;
}

}  // namespace quail::exec
