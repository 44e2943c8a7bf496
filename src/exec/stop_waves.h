#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "exec/on_demand.h"
#include "exec/verdicts.h"

namespace quail::exec {

/// Chooses what an early stop of one call asks next: some tuples of every row that none has met
/// yet, twice as many each time. A row that is met asks no more.
class StopWaves {
 public:
  /// Whether a tuple meets what is looked for; nullopt while it is undecided.
  using Meets = std::function<std::optional<bool>(std::span<const TextId> tuple)>;

  /// `rows` as a pass of the engine left them; `wave` tuples of each at first.
  StopWaves(const OnDemandReads::StopRows& rows, std::uint32_t wave);

  /// Distinct undecided tuples of one width; none when all that matters is decided. REQUIRES: those
  /// of the last wave are decided.
  std::set<std::vector<TextId>> Next(const Meets& meets);

 private:
  struct Row {
    std::vector<std::vector<TextId>> tuples;
    std::size_t judged = 0;  ///< tuples before it are known not to meet
  };

  std::vector<Row> rows_;
  std::size_t wave_;
};

/// Undecided tuples, by call.
using TuplesByCall = std::map<plan::CallId, std::set<std::vector<TextId>>>;

/// What an early stop of a condition over several calls asks before the engine runs again: some
/// tuples, at most `wave`, of every row that none has met yet, all of the call that comes last in
/// the condition: what they are about is nearest to being met.
TuplesByCall NextOfEach(const OnDemandReads::StopRows& rows, std::uint32_t wave);

}  // namespace quail::exec
