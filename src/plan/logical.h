#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/physical.h"

namespace quail::plan {

/// A top-level AND term of a block's WHERE or inner-join ON that contains AI calls and could not be left to the
/// relational engine.
struct AiConjunct {
  std::string sql;                    ///< with lookups for the calls
  std::vector<CallId> calls;
  std::vector<RelationId> relations;  ///< that its calls' arguments read
  bool is_call = false;               ///< just a call, or NOT of one: can be planned as Predicate
  bool negated = false;
};

/// A condition without AI calls between two or more relations.
struct RelationalConjunct {
  std::string sql;
  std::vector<RelationId> relations;
};

/// A bound query block: what must be asked, before any order or anchor is chosen.
struct LogicalPlan {
  std::vector<Relation> relations;
  std::vector<Call> calls;
  std::vector<AiConjunct> ai_conjuncts;
  std::vector<RelationalConjunct> relational_conjuncts;
  std::string final_sql;
  std::vector<std::string> cleanup_sql;
  std::vector<std::string> notices;
  std::optional<std::uint64_t> limit;
};

/// Token statistics of a relation's argument column, measured after it was materialised.
struct ArgumentStatistics {
  RelationId relation;
  std::string id_column;
  std::uint64_t rows = 0;
  std::uint64_t nulls = 0;
  std::uint64_t distinct = 0;
  double mean_tokens = 0;         ///< over distinct texts
  double sum_tokens = 0;          ///< over distinct texts
  double sum_squared_tokens = 0;
  std::uint64_t max_tokens = 0;
  bool estimated = false;         ///< from a sample
};

}  // namespace quail::plan
