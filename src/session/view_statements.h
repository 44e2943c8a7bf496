#pragma once

#include <optional>
#include <string_view>

#include "quail/session.h"
#include "session/session_state.h"
#include "sql/statement.h"

namespace quail::session {

/// The views with AI calls that the connection knows, read again where they may be others.
const plan::AiViews& KnownViews(SessionState& state);

/// quail_view_sql(sql): a CREATE VIEW of duckdb_views() with the query that a stand-in holds.
void RegisterViewSql(relational::Connection& connection);

/// Statements that make or name views with AI calls. The relational engine cannot bind their
/// queries: it keeps them in stand-ins (plan::StandInOfView).
class ViewStatements {
 public:
  /// `state` outlives this.
  explicit ViewStatements(SessionState& state) : state_(state) {}

  /// Whether a query names such a view.
  bool Names(const sql::Statement& read) const;
  /// The statement as it is read where a query of it asks, if such a view is in it.
  std::optional<sql::Statement> ReadOver(std::string_view script,
                                         const Session::Statement& statement) const;
  /// CREATE VIEW with AI calls as one of the stand-in. Throws Error.
  sql::Statement WithStandIn(std::string_view script, sql::Statement read) const;
  /// What the engine says where it reads a stand-in, as an error that says what the view is; any
  /// other error as it is.
  Error Reword(const Error& error, std::string_view script,
               const Session::Statement& statement) const;

 private:
  SessionState& state_;
};

}  // namespace quail::session
