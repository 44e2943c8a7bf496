#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/logical.h"

namespace quail::optimizer {

/// Writes the SQL by which steps read their domains from the relations' tables.
class DomainQuery {
 public:
  explicit DomainQuery(const plan::LogicalPlan& plan) : plan_(plan) {}

  /// From here on a conjunct's verdicts are decided, and queries may test it.
  void Decide(std::size_t conjunct) { decided_.insert(conjunct); }

  /// Whether conditions without AI calls tie two relations together, directly or through others.
  bool Linked(plan::RelationId a, plan::RelationId b) const;

  /// The rows of some relations that are still open, by their numbers: a temp table with a column
  /// q0, q1, .. a relation, each combination once.
  struct OpenRows {
    std::string table;
    std::vector<plan::RelationId> relations;
  };
  /// The columns that Rows must select for such a table.
  std::vector<std::string> RowNumbers(const std::vector<plan::RelationId>& relations) const;
  /// SELECT columns FROM the open rows WHERE `guard`, if not empty. What Rows tests the table was
  /// made with.
  std::string Rows(const std::vector<std::string>& columns, const OpenRows& open,
                   const std::string& guard) const;
  /// SELECT columns FROM relations WHERE every condition about them that is decided, and `guard` if
  /// not empty; rows of linked other relations must exist.
  std::string Rows(const std::vector<std::string>& columns,
                   const std::vector<plan::RelationId>& relations, const std::string& guard) const;
  /// Deletes the rows of a relation that have no partner in the decided conditions of the pair.
  std::string DeleteUnmatched(plan::RelationId relation, plan::RelationId other) const;

  /// Fills the pair table of a conjunct, whose verdicts are decided; to be run before conditions
  /// test it. REQUIRES: it has one.
  std::string KeepPairs(std::size_t index) const;

  /// `"alias"."id_column"` of the arguments of a call.
  std::string ColumnOf(const plan::Argument& argument) const;

 private:
  std::string RowNumber(plan::RelationId relation) const;
  std::vector<std::string> Terms(const std::vector<plan::RelationId>& relations) const;
  std::vector<plan::RelationId> LinkedOthers(const std::vector<plan::RelationId>& relations) const;
  std::string FromList(const std::vector<plan::RelationId>& relations) const;
  /// FromList and the tables of the decided pairs between them.
  std::string FromDecided(const std::vector<plan::RelationId>& relations) const;
  std::string DistinctSide(plan::RelationId relation, const plan::Call& call) const;

  const plan::LogicalPlan& plan_;
  std::set<std::size_t> decided_;
};

}  // namespace quail::optimizer
