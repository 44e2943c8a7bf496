#include "exec/unasked_lookups.h"

#include <fmt/format.h>

#include <string>
#include <variant>
#include <vector>

#include "exec/lookup_functions.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

/// A run that reads much more than the statement did would take longer than what it is to find out
/// is worth.
constexpr std::uint64_t kMostMore = 16;
constexpr std::uint64_t kFewLookups = 1U << 20U;

/// While it lives, the engine has one thread: the order of rows and of sums is the same each time.
class OneThread {
 public:
  explicit OneThread(relational::Connection& connection) : connection_(connection) {
    threads_ = relational::QueryText(connection_, "SELECT current_setting('threads')").at(0).at(0);
    connection_.TidyUp("SET threads = 1");
  }
  ~OneThread() {
    if (threads_) connection_.TidyUp(fmt::format("SET threads = {}", *threads_));
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  relational::Connection& connection_;
  std::optional<std::string> threads_;
};

/// A statement's rows, read for comparison only.
class RowsReader {
 public:
  RowsReader(relational::Connection& connection, LookupSource& lookups,
             const plan::PhysicalPlan& plan)
      : connection_(connection),
        lookups_(lookups),
        // Order and NULLs of one row count, the order of the rows does not.
        sql_(fmt::format(
            "SELECT count(*), CAST(sum(CAST(hash(*COLUMNS(*)) AS HUGEINT)) AS VARCHAR), "
            "CAST(bit_xor(hash(*COLUMNS(*))) AS VARCHAR) FROM ({}\n) AS q",
            plan.repeatable_sql)) {
    if (plan.steps.empty()) return;
    const auto* step = std::get_if<plan::AskOnDemandStep>(&plan.steps.back());
    if (step == nullptr) return;
    reads_.emplace(*lookups_.verdicts, step->calls, step->stops);
    noting_.emplace(lookups_, *reads_);
  }

  using Rows = std::vector<std::vector<std::optional<std::string>>>;

  /// nullopt where that run fails, as it may where a stand-in leads to rows that are not there.
  std::optional<Rows> Read(std::optional<bool> stand_in) {
    lookups_.unasked.Restart(stand_in, most_);
    if (reads_) reads_->Clear();
    std::optional<Rows> rows;
    try {
      rows = relational::QueryText(connection_, sql_, relational::ErrorPlaces::kNone);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInterrupted) throw;
    }
    if (!stand_in) most_ = lookups_.unasked.count() * kMostMore + kFewLookups;
    return rows;
  }

  /// Whether other rows come with stand-ins than `rows`, which come without.
  bool Differs(const std::optional<Rows>& rows) {
    for (const bool stand_in : {true, false}) {
      const auto other = Read(stand_in);
      if (other && *other != *rows) return true;
    }
    return false;
  }

 private:
  relational::Connection& connection_;
  LookupSource& lookups_;
  std::string sql_;
  std::uint64_t most_ = std::numeric_limits<std::uint64_t>::max();
  std::optional<OnDemandReads> reads_;
  std::optional<ReadsScope> noting_;
};

bool DependsOnUnasked(relational::Connection& connection, LookupSource& lookups,
                      const plan::PhysicalPlan& plan) {
  RowsReader reader(connection, lookups, plan);
  auto rows = reader.Read(std::nullopt);
  if (!rows || !lookups.unasked.call() || !reader.Differs(rows)) return false;
  const OneThread scope(connection);
  rows = reader.Read(std::nullopt);
  return rows && reader.Read(std::nullopt) == rows && reader.Differs(rows);
}

}  // namespace

void UnaskedLookups::Restart(std::optional<bool> stand_in, std::uint64_t most) {
  stand_in_ = stand_in;
  most_ = most;
  count_ = 0;
  call_ = kNone;
}

void UnaskedLookups::Count(std::size_t lookups) {
  if (count_.fetch_add(lookups) + lookups <= most_) return;
  throw Error(ErrorCode::kQuery, "too many lookups to compare");
}

void UnaskedLookups::Note(plan::CallId call) { call_ = call.value(); }

std::optional<plan::CallId> UnaskedLookups::call() const {
  if (call_ == kNone) return std::nullopt;
  return plan::CallId(call_);
}

void CheckUnasked(relational::Connection& connection, LookupSource& lookups,
                  const plan::PhysicalPlan& plan) {
  const auto id = lookups.unasked.call();
  if (!id || plan.repeatable_sql.empty()) return;
  const bool depends = DependsOnUnasked(connection, lookups, plan);
  lookups.unasked.Restart();
  if (!depends) return;
  const plan::Call& call = plan.calls[id->value()];
  throw Error(ErrorCode::kQuery,
              fmt::format("internal error: the result depends on answers of {} that were never "
                          "asked for, so it is wrong; this is a fault of Quail, please report the "
                          "statement",
                          call.function),
              call.position);
}

void CheckUnaskedBefore(relational::Connection& connection, LookupSource& lookups,
                        const plan::PhysicalPlan& plan) {
  const bool on_demand =
      !plan.steps.empty() && std::holds_alternative<plan::AskOnDemandStep>(plan.steps.back());
  if (!on_demand && !plan.repeatable_sql.empty()) {
    RowsReader(connection, lookups, plan).Read(std::nullopt);
  }
  CheckUnasked(connection, lookups, plan);
}

}  // namespace quail::exec
