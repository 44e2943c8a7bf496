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
  /// `stops` outlives the reads.
  OnDemandReads(const StatementVerdicts& verdicts, std::span<const plan::CallId> calls,
                std::span<const plan::EarlyStop> stops = {});

  /// Of one call in one pass.
  struct Reads {
    std::uint64_t asked = 0;       ///< lookups, one a value that the engine needed
    std::uint64_t null_input = 0;  ///< of these with a NULL argument
    std::set<std::vector<TextId>> undecided;
    std::map<std::vector<TextId>, std::uint64_t> failed;  ///< tuple -> lookups
  };

  /// Of one row of the query around an EXISTS in one pass.
  struct StopRow {
    bool met = false;  ///< a tuple lets it survive
    std::map<plan::CallId, std::set<std::vector<TextId>>> undecided;
    std::uint64_t undecided_lookups = 0;
  };
  using StopRows = std::map<std::vector<TextId>, StopRow>;

  /// Begins a pass.
  void Clear();
  /// Whether this pass read a verdict that the one before it missed. A pass of a statement that
  /// gives the same rows each time does: what missed a verdict first waited for no other.
  bool found_missed() const { return found_missed_; }
  bool any_undecided() const;
  /// Notes the lookups of a batch of rows: `keys` is [rows, width]. Calls that are planned are not
  /// noted.
  void Note(plan::CallId call, std::span<const TextId> keys, std::size_t rows);
  /// As Note, of lookups of an early stop: `keys` is [rows, width + the call's arguments].
  void NoteUntil(std::size_t stop, plan::CallId call, std::size_t width,
                 std::span<const TextId> keys, std::size_t rows);
  /// Notes what must be decided before another call is read: undecided tuples only, as the engine
  /// itself may never read them where it finds that their value changes nothing.
  void NoteAwaited(plan::CallId call, std::span<const TextId> keys, std::size_t rows);
  /// As NoteAwaited, with the keys of NoteUntil.
  void NoteAwaitedUntil(std::size_t stop, plan::CallId call, std::size_t width,
                        std::span<const TextId> keys, std::size_t rows);
  /// A row of the query around an EXISTS has what it needs.
  void NoteMet(std::size_t stop, std::span<const TextId> row);
  bool IsStop(std::size_t stop) const { return stop < stops_.size(); }
  bool IsStop(std::size_t stop, plan::CallId call) const;
  const Reads& of(plan::CallId call) const { return reads_.at(call.value()); }
  const StopRows& rows_of(std::size_t stop) const { return stop_rows_.at(stop); }
  /// Lookups that read no verdict because an early stop needs none.
  std::uint64_t unjudged() const;

 private:
  void Find(plan::CallId call, std::span<const TextId> key);
  void FindUntil(std::size_t stop, plan::CallId call, std::span<const TextId> group,
                 std::span<const TextId> key);

  const StatementVerdicts& verdicts_;
  std::mutex mutex_;
  bool found_missed_ = false;
  std::map<std::uint32_t, std::set<std::vector<TextId>>> missed_;  ///< in the pass before, by call
  std::vector<StopRows> missed_rows_;                              ///< the same of early stops
  std::map<std::uint32_t, Reads> reads_;  ///< by call; all calls on demand have an entry
  std::span<const plan::EarlyStop> stops_;
  std::vector<StopRows> stop_rows_;  ///< index = stop
};

/// Undecided tuples as a domain that stands for no rows: those are counted when all is decided.
Domain UndecidedDomain(const std::set<std::vector<TextId>>& tuples, std::size_t width);

}  // namespace quail::exec
