#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plan/logical.h"
#include "plan/source_text.h"
#include "plan/sql_writer.h"
#include "plan/statement_values.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// A common table expression that a block may name.
struct VisibleCte {
  std::string name;
  std::shared_ptr<const sql::Json> entry;  ///< of the engine's cte_map, as the user wrote it
  bool has_ai = false;                     ///< it asks the model, itself or through another one
};

/// Whether a table name at or below `node` is that of a CTE that asks the model.
bool NamesAiCte(const sql::Json& node, const std::vector<VisibleCte>& ctes);

/// What the blocks of one statement share while they are bound.
struct BindState {
  BindState(Catalog& catalog_in, const SourceText& source_in, std::string prefix_in)
      : catalog(catalog_in), source(source_in), writer(catalog_in), prefix(std::move(prefix_in)) {}

  /// The id of an equal call bound before, else of this one.
  CallId AddCall(Call call);
  void AddNotice(const std::string& notice);
  std::string NewTable();
  /// A pair table of `width` columns, which the plan makes and drops.
  PairTable NewPairTable(std::size_t width);
  std::string NewIdColumn() { return "quail_t" + std::to_string(id_columns++); }

  Catalog& catalog;
  const SourceText& source;
  SqlWriter writer;
  std::string prefix;
  std::set<std::string> volatile_macros;
  StatementValues values;
  bool drops_expressions = false;  ///< of a prompt: nobody binds them
  LogicalPlan plan;
  std::uint32_t tables = 0;
  std::uint32_t id_columns = 0;
  std::uint32_t pair_tables = 0;
  std::map<std::string, CallId> calls_by_key;
};

}  // namespace quail::plan
