#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/physical.h"

namespace quail::plan {

/// A condition over lookups and columns that must hold, beside those before it, which it shares
/// with other calls.
struct Guard {
  std::string sql;
  std::shared_ptr<const Guard> before;
};

/// A call inside a larger condition, and where it must be asked.
struct GuardedCall {
  CallId call;
  std::shared_ptr<const Guard> guard;  ///< nullptr: wherever the condition is reached
  bool in_case = false;                ///< WHEN of a CASE that has an ELSE: a NULL goes there
};

/// The pairs that a join predicate lets survive, as a temp table without repeats: the engine joins
/// by hash with it, where a lookup would be tried on every pair.
struct PairTable {
  std::string name;
  std::vector<std::string> columns;  ///< INTEGER text ids, one an argument of the call
};

/// An AND term, necessary for a row of a block's result, that contains AI calls: planned.
struct AiConjunct {
  std::string sql;                    ///< with lookups for the calls
  std::vector<GuardedCall> calls;     ///< in the order of evaluation
  std::vector<RelationId> relations;  ///< that the term reads, sorted
  bool is_call = false;               ///< just a call, or NOT of one: can be planned as a Predicate
  bool negated = false;
  std::optional<PairTable> pairs =
      std::nullopt;  ///< which the block's tree reads in place of the term
};

/// An AND term without AI calls, necessary for a row of a block's result, between two or more
/// relations.
struct RelationalConjunct {
  std::string sql;
  std::vector<RelationId> relations;  ///< sorted
};

/// A call whose value a row needs wherever else it stands (select list, ORDER BY, outer joins ..).
struct ComputedCall {
  CallId call;
  std::string domain_sql;  ///< as AskColumnStep::domain_sql
  /// Its domain is what LIMIT leaves of the rows: they are known before it is asked.
  bool after_limit = false;
  /// To run before, if not empty: makes the temp table of the rows that are still open, which
  /// domain_sql reads, and those of calls after this one may.
  std::string open_rows_sql = {};
};

/// A block that needs no more than some rows (LIMIT and OFFSET), which are in no order and come
/// from these AND terms alone.
struct RowLimit {
  std::uint64_t rows = 0;
  std::vector<std::size_t> conjuncts;  ///< of LogicalPlan::ai_conjuncts
};

/// A bound statement: what must be asked, before any order or anchor is chosen.
struct LogicalPlan {
  std::vector<Relation> relations;
  std::vector<std::string> reduction_sql;
  std::vector<std::string> pair_tables_sql;  ///< makes the pair tables, empty
  std::vector<Call> calls;                   ///< index = CallId
  std::vector<CallId> case_calls;            ///< without a verdict of theirs a row falls into ELSE
  std::vector<AiConjunct> ai_conjuncts;
  std::vector<RelationalConjunct> relational_conjuncts;
  std::vector<ComputedCall> computed;
  std::string on_demand_sql;  ///< as AskOnDemandStep::sql, empty without calls on demand
  /// The table that on_demand_sql makes; empty where no row can have a struct without names.
  std::string kept_table;
  std::vector<EarlyStop> early_stops;
  std::string final_sql;
  std::string rows_sql;     ///< the query in final_sql; to be described, not run
  bool repeatable = false;  ///< each run of rows_sql gives the same rows
  std::vector<std::string> cleanup_sql;
  std::vector<std::string> notices;
  std::vector<RowLimit> limits;
};

/// Token statistics of a relation's argument column, measured after it was materialised.
struct ArgumentStatistics {
  RelationId relation;
  std::string id_column;
  std::uint64_t rows = 0;
  std::uint64_t nulls = 0;
  std::uint64_t distinct = 0;
  double mean_tokens = 0;  ///< over distinct texts
  double sum_tokens = 0;   ///< over distinct texts
  double sum_squared_tokens = 0;
  std::uint64_t max_tokens = 0;
  bool estimated = false;  ///< from a sample
};

}  // namespace quail::plan
