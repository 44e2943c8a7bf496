#pragma once

#include <map>
#include <string>
#include <string_view>

#include "plan/catalog.h"
#include "plan/sql_writer.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// now(), current_date, current_user and their like have one value in a statement, which is run
/// here in several: they become constants of the time at which it was bound.
class StatementValues {
 public:
  StatementValues() = default;
  /// Asks the engine for the values that `tree` may read, all at once.
  StatementValues(const sql::Json& tree, Catalog& catalog, const SqlWriter& writer);

  /// Replaces the functions in a tree; results keep their names.
  void ReplaceCalls(sql::Json& tree, const SqlWriter& writer) const;
  /// What a bare name that is no column and no alias stands for; nullptr: nothing of these.
  const sql::Json* ValueOf(const sql::Json& name) const;

 private:
  std::map<std::string, sql::Json, std::less<>> values_;  ///< by name, "()" behind a function's
};

}  // namespace quail::plan
