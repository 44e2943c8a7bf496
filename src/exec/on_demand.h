#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "exec/domain.h"
#include "exec/statement_verdicts.h"

namespace quail::exec {

/// What the lookups of calls on demand read during one pass of the engine over a statement
/// (plan::AskOnDemandStep): how often, and which tuples had no verdict yet. Thread-safe.
class OnDemandReads {
 public:
  OnDemandReads(const StatementVerdicts& verdicts, std::span<const plan::CallId> calls);

  /// Of one call in one pass.
  struct Reads {
    std::uint64_t asked = 0;       ///< lookups, one a value that the engine needed
    std::uint64_t null_input = 0;  ///< of these with a NULL argument
    std::set<std::vector<TextId>> undecided;
    std::map<std::vector<TextId>, std::uint64_t> failed;  ///< tuple -> lookups
  };

  /// Begins a pass.
  void Clear();
  /// Notes the lookups of a batch of rows: `keys` is [rows, width]. Calls that are planned are not
  /// noted.
  void Note(plan::CallId call, std::span<const TextId> keys, std::size_t rows);
  const Reads& of(plan::CallId call) const { return reads_.at(call.value()); }

 private:
  const StatementVerdicts& verdicts_;
  std::mutex mutex_;
  std::map<std::uint32_t, Reads> reads_;  ///< by call; all calls on demand have an entry
};

/// The undecided tuples as a domain that stands for no rows: those are counted when all is decided.
Domain UndecidedDomain(const OnDemandReads::Reads& reads, std::size_t width);

}  // namespace quail::exec
