#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "quail/session.h"
#include "session/session_state.h"
#include "session/view_statements.h"
#include "sql/statement.h"

namespace quail::session {

/// A statement without AI calls, which the relational engine runs as it is. Its errors have places
/// in the script.
class PlainStatement {
 public:
  /// `whole` is the statement as the user wrote it, a part of `script`. All outlive this, `state`
  /// and `views` what Run returns.
  PlainStatement(SessionState& state, const ViewStatements& views, std::string_view script,
                 const Session::Statement& whole, const sql::Statement& read)
      : state_(state), views_(views), script_(script), whole_(whole), read_(read) {}

  /// The statement's rows, its plan, or nothing for a statement with an effect, after which the
  /// session knows what may be another.
  std::unique_ptr<Result> Run(const RunOptions& options);
  /// COPY of the rows to a file. `copy_options` stands in parentheses behind the path.
  std::uint64_t RunToFile(std::string_view path, std::string_view copy_options);

 private:
  std::unique_ptr<Result> RunWords(const RunOptions& options);
  std::unique_ptr<Result> Rows(CellForm form) const;
  std::unique_ptr<Result> RunWhole(std::string_view words, CellForm form);
  void ForgetNames();
  void FollowTransaction();

  SessionState& state_;
  const ViewStatements& views_;
  std::string_view script_;
  const Session::Statement& whole_;
  const sql::Statement& read_;
};

}  // namespace quail::session
