#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "exec/domain.h"
#include "exec/statement_verdicts.h"

namespace quail::exec {

/// Lookups of a call in a batch of rows.
struct Lookups {
  plan::CallId call;
  std::span<const TextId> ids;  ///< [rows, row_width + the call's arguments]
  std::size_t rows = 0;
  std::optional<std::size_t> stop = std::nullopt;  ///< the early stop that they belong to
  std::size_t row_width = 0;  ///< ids of the row of the query around its EXISTS

  std::span<const TextId> row(std::size_t i) const { return line(i).first(row_width); }
  std::span<const TextId> key(std::size_t i) const { return line(i).subspan(row_width); }

 private:
  std::span<const TextId> line(std::size_t i) const {
    const std::size_t width = ids.size() / rows;
    return ids.subspan(i * width, width);
  }
};

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
  /// Notes lookups whose values were read. Calls that are planned are not noted.
  void Note(const Lookups& lookups);
  /// Notes what must be decided before another call is read: undecided tuples only, as the engine
  /// itself may never read them where it finds that their value changes nothing.
  void NoteAwaited(const Lookups& lookups);
  /// A row of the query around an EXISTS has what it needs.
  void NoteMet(std::size_t stop, std::span<const TextId> row);
  bool IsStop(std::size_t stop) const { return stop < stops_.size(); }
  bool IsStop(std::size_t stop, plan::CallId call) const;
  const Reads& of(plan::CallId call) const { return reads_.at(call.value()); }
  const StopRows& rows_of(std::size_t stop) const { return stop_rows_.at(stop); }
  /// Lookups that read no verdict because an early stop needs none.
  std::uint64_t unjudged() const;

 private:
  void FindMissed(const Lookups& lookups, std::size_t i);
  /// Whether a verdict is what the row of its early stop needs.
  bool Meets(const Lookups& lookups, const Judgement& judgement) const;

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
