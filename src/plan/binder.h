#pragma once

#include <string>
#include <string_view>

#include "plan/ai_views.h"
#include "plan/catalog.h"
#include "plan/logical.h"
#include "sql/statement.h"

namespace quail::plan {

struct BindInput {
  std::string_view script;          ///< the user's text
  const sql::Statement& statement;  ///< a part of it, with AI calls, a query of any kind
  std::string
      table_prefix;  ///< of the relations' tables, unique among a session's running statements
  const AiViews* views = nullptr;  ///< that the statement may name
};

/// Binds names, types and AI calls of a statement. Throws Error with the place in the script: the
/// engine's own errors about the statement too, Error{kBind} for names and arguments,
/// Error{kUnsupported} for shapes that are not done yet. A DESCRIBE is bound to relations without
/// rows and asks nothing.
LogicalPlan Bind(const BindInput& input, Catalog& catalog);

/// Keeps rows with these columns where structs without names are among them. REQUIRES: kept_table
/// is not empty.
void KeepUnnamedStructs(LogicalPlan& plan, const columnar::Schema& columns);

}  // namespace quail::plan
