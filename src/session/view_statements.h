#pragma once

#include <optional>
#include <string_view>

#include "quail/session.h"
#include "session/session_state.h"
#include "sql/statement.h"

namespace quail::session {

/// Statements that make or name views with AI calls. The relational engine cannot bind those views,
/// so the session keeps them, and neither knows the other's names.
class ViewStatements {
 public:
  /// `state` outlives this.
  explicit ViewStatements(SessionState& state) : state_(state) {}

  /// Whether a query names such a view.
  bool Names(const sql::Statement& read) const;
  /// The statement as it is read where a query of it asks, if such a view is in it.
  std::optional<sql::Statement> ReadOver(std::string_view script,
                                         const Session::Statement& statement) const;
  /// To be told of each statement that the engine ran: views with AI calls come and go with its
  /// transactions.
  void Follow(const sql::Statement& read);
  /// Of CREATE: whether there is nothing to do (IF NOT EXISTS). Throws Error{kBind} for a name that
  /// is taken.
  bool IsMade(std::string_view script, const Session::Statement& statement,
              const sql::Statement& read) const;
  /// CREATE VIEW with AI calls. Throws Error.
  void Keep(std::string_view script, sql::Statement read);
  /// What the engine says of such a view, that it does not exist, as an error that says what it is;
  /// any other error as it is.
  Error Reword(const Error& error, std::string_view script,
               const Session::Statement& statement) const;

 private:
  SessionState& state_;
  std::optional<plan::AiViews> before_;  ///< those from before the transaction that is open
};

}  // namespace quail::session
