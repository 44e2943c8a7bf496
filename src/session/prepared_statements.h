#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quail/session.h"
#include "session/session_state.h"
#include "session/view_statements.h"
#include "sql/prepared.h"

namespace quail::session {

/// Prepared statements with AI calls. The relational engine cannot bind those, so the session keeps
/// their texts; each EXECUTE reads one anew, with its values in the places of the parameters.
class PreparedStatements {
 public:
  /// Both outlive this.
  PreparedStatements(SessionState& state, const ViewStatements& views)
      : state_(state), views_(views) {}

  /// PREPARE. `read` reads the statement behind AS and throws for what cannot run. False: the
  /// statement is another, or has no AI calls.
  bool Keep(std::string_view script, const Session::Statement& statement,
            const std::function<sql::Statement(const Session::Statement&)>& read);
  /// DEALLOCATE of one of these, or of ALL (which the engine does not know of its own).
  bool Drop(std::string_view script, const Session::Statement& statement);

  /// A statement as EXECUTE makes it. Positions are in `text`.
  struct Execution {
    std::string name;
    std::string text;
    sql::Statement read;
  };
  /// EXECUTE of one of these. Throws Error.
  std::optional<Execution> Find(std::string_view script, const Session::Statement& statement);
  /// An error of an execution as one at the place of EXECUTE.
  static Error Reword(const Error& error, const Execution& execution, std::string_view script,
                      const Session::Statement& statement);

 private:
  struct Kept {
    std::string text;
    Dialect dialect = Dialect::kSnowflake;
  };

  std::string LiteralOf(const std::string& sql);

  SessionState& state_;
  const ViewStatements& views_;
  std::map<std::string, Kept> kept_;  ///< by name in lower case
};

}  // namespace quail::session
