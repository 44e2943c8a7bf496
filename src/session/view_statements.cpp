#include "session/view_statements.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/text_position.h"
#include "plan/binder.h"
#include "relational/quote.h"
#include "session/connection_catalog.h"
#include "session/user_position.h"

namespace quail::session {
namespace {

sql::ScriptPart PartOf(const Session::Statement& statement) {
  return {statement.offset, statement.text.size()};
}

/// "table", "view" or nothing: what the relational engine has under a name without a schema.
std::string KindOfName(relational::Connection& connection, std::string_view name) {
  const auto rows = relational::QueryText(
      connection,
      fmt::format("SELECT kind FROM (SELECT 'table' AS kind, table_name AS name, schema_name, "
                  "temporary FROM duckdb_tables() UNION ALL SELECT 'view', view_name, schema_name, "
                  "temporary FROM duckdb_views()) WHERE lower(name) = lower({}) AND (temporary OR "
                  "schema_name = current_schema()) ORDER BY temporary DESC LIMIT 1",
                  relational::QuoteText(name)));
  return rows.empty() ? "" : rows[0][0].value_or("");
}

}  // namespace

bool ViewStatements::Names(const sql::Statement& read) const {
  using Kind = sql::StatementKind;
  const bool query = read.kind == Kind::kQuery || read.kind == Kind::kExplain ||
                     read.kind == Kind::kExplainAnalyze || read.kind == Kind::kDescribe ||
                     read.kind == Kind::kCreateView;
  if (!query || state_.views.empty()) return false;
  ConnectionCatalog catalog(*state_.connection);
  sql::Json tree = sql::ReadTree(catalog.Parse(read.query));
  return state_.views.Expand(tree, catalog);
}

std::optional<sql::Statement> ViewStatements::ReadOver(std::string_view script,
                                                       const Session::Statement& statement) const {
  if (state_.views.empty()) return std::nullopt;
  std::optional<sql::Statement> read;
  bool found = false;
  // What cannot be read in this way the engine is asked about.
  Quietly([&] {
    read = sql::ReadAsAsking(script, PartOf(statement), state_.config.dialect);
    found = read && Names(*read);
  });
  if (!found) return std::nullopt;
  read->has_ai = true;
  return read;
}

bool ViewStatements::IsMade(std::string_view script, const Session::Statement& statement,
                            const sql::Statement& read) const {
  const bool is_view = read.kind == sql::StatementKind::kCreateView;
  const std::string& name = is_view ? read.view : read.table;
  if (name.empty()) return false;
  const bool ours = state_.views.contains(name);
  // Names among its own the engine sees to.
  if (!ours && !(is_view && read.has_ai)) return false;
  const std::string taken_by = ours ? "view" : KindOfName(*state_.connection, name);
  if (taken_by.empty() || (read.or_replace && is_view && taken_by == "view")) return false;
  if (read.if_not_exists && is_view && taken_by == "view") return true;
  throw Error(ErrorCode::kBind, fmt::format("there is a {} named \"{}\" already", taken_by, name),
              base::Locate(script, statement.offset));
}

void ViewStatements::Keep(std::string_view script, sql::Statement read) {
  ConnectionCatalog catalog(*state_.connection);
  sql::Json tree = sql::ReadTree(catalog.Parse(read.query));
  state_.views.Expand(tree, catalog);
  read.kind = sql::StatementKind::kDescribe;
  read.before.clear();
  plan::Bind({script, read, "quail_r", &state_.views}, catalog);
  relational::QueryText(*state_.connection,
                        "DROP VIEW IF EXISTS " + relational::QuoteName(read.view));
  state_.views.Keep(read.view, std::move(sql::QueryNode(tree)), read.view_columns);
}

Error ViewStatements::Reword(const Error& error, std::string_view script,
                             const Session::Statement& statement) const {
  const std::string view = state_.views.NotFoundIn(error.what());
  if (view.empty()) return error;
  const auto at = sql::FindName(script, PartOf(statement), state_.config.dialect, view);
  return Error(ErrorCode::kUnsupported,
               fmt::format("{} is a view with AI calls, kept for this connection: it can be read "
                           "in queries, not stand here",
                           view),
               base::Locate(script, at.value_or(statement.offset)));
}

}  // namespace quail::session
