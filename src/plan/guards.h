#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/logical.h"
#include "plan/name_scope.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Member of a lookup that stands for a call: the call's id. The engine ignores it.
inline constexpr const char* kCallMark = "quail_call";

/// Member of a lookup of a call on demand, which no step but the last decides.
inline constexpr const char* kOnDemandMark = "quail_on_demand";

/// Whether a lookup of a call on demand is at or below `node`: no condition of a domain may read
/// it.
bool ContainsOnDemand(const sql::Json& node);
/// Whether a lookup of a planned call is at or below `node`, nested queries included.
bool ContainsLookup(const sql::Json& node);

/// The guards up to `guard` and behind `from`, as one condition; empty where there are none.
/// REQUIRES: `from` is among them, or null.
std::string ConditionSql(const std::shared_ptr<const Guard>& guard, const Guard* from = nullptr);

/// Of the calls of one expression in turn: which of their guards are tested on rows that are kept
/// (EXPLAIN: "keep open"). Calls in a long chain have the guards of all calls before them, which
/// together are as many as the square of the chain's length.
class KeptGuards {
 public:
  /// Goes on to a call: what is kept and is not among its guards is none of the next calls either.
  /// Whether its guards are too many to be tested together.
  bool GoOn(const GuardedCall& call);
  /// From now on rows are kept that all guards of a call leave open but its last, which may be this
  /// call's alone (THEN).
  void Keep(const GuardedCall& call) { kept_ = call.guard->before.get(); }

  bool none() const { return kept_ == nullptr; }
  /// What is left to be tested of the guards up to `guard`; empty where that is nothing.
  std::string ConditionSql(const std::shared_ptr<const Guard>& guard) const {
    return plan::ConditionSql(guard, kept_);
  }

 private:
  const Guard* kept_ = nullptr;  ///< the last of those that the kept rows were tested with
};

/// What becomes of an expression's value: a filter takes NULL and FALSE alike.
enum class ValueUse : std::uint8_t { kAny, kFilter };

/// The calls (as lookups) of an expression in the order of evaluation, each with the condition
/// under which its value can matter: behind FALSE terms of an AND, TRUE terms of an OR, other
/// branches of CASE, earlier arguments of COALESCE it cannot (sql.md section 3, 3). Terms without
/// calls are taken as evaluated first. A condition that reads more than the block's rows is left
/// out, which makes the domain larger, never smaller. A window takes rows whose own value does not
/// matter, so conditions around it do not count inside; nor do those around an aggregate in a block
/// with `several_sets` of grouping keys, where a key may be NULL around it and a value in its rows.
std::vector<GuardedCall> GuardedCallsOf(const sql::Json& expression, ValueUse use,
                                        const NameScope& scope, const SqlWriter& writer,
                                        bool several_sets = false);

}  // namespace quail::plan
