#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "plan/physical.h"

namespace quail::relational {
class Connection;
}

namespace quail::exec {

struct LookupSource;

/// Lookups of planned calls that find no verdict though none of their texts is NULL. The engine may
/// evaluate a lookup on rows where nothing depends on it, so one alone is no fault. Thread-safe but
/// for Restart.
class UnaskedLookups {
 public:
  /// `stand_in`: what they give in place of NULL, of rows that nobody gets to see. More than `most`
  /// lookups throw Error{kQuery}.
  void Restart(std::optional<bool> stand_in = std::nullopt,
               std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  /// Lookups of any kind that are about to be made.
  void Count(std::size_t lookups);
  std::uint64_t count() const { return count_; }
  void Note(plan::CallId call);
  /// A call of which there was one since Restart.
  std::optional<plan::CallId> call() const;
  std::optional<bool> stand_in() const { return stand_in_; }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::optional<bool> stand_in_;
  std::uint64_t most_ = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<std::uint32_t> call_ = kNone;
};

/// To be called when a statement's rows have been read, and after Executor::Run: where lookups
/// found verdicts that nobody asked for, reads the rows again with TRUE and FALSE in their places.
/// Throws Error{kQuery} at a call where other rows come: our fault, and the rows that were read are
/// wrong. Reads `plan.repeatable_sql`; REQUIRES: no transaction is open, which a run that fails
/// would end.
void CheckUnasked(relational::Connection& connection, LookupSource& lookups,
                  const plan::PhysicalPlan& plan);
/// The same before the rows are read, for statements whose effect could not be taken back.
void CheckUnaskedBefore(relational::Connection& connection, LookupSource& lookups,
                        const plan::PhysicalPlan& plan);

}  // namespace quail::exec
