#include "session/change_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text_position.h"
#include "session/describe.h"
#include "session/taken_names.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {

namespace {

/// The engine binds the change and tells of tables and columns that are not there or not to be
/// changed.
void Bind(relational::Connection& connection, std::string_view script,
          const sql::Statement& statement, const TextPosition& target) {
  constexpr std::string_view kWord = "EXPLAIN ";
  const auto in_script = [&](const TextPosition& position) -> std::optional<TextPosition> {
    if (position.offset < kWord.size()) return target;
    return base::Locate(script, statement.check_map.ToInput(position.offset - kWord.size()));
  };
  Recoded(
      [&] {
        Located(
            [&] { relational::QueryText(connection, fmt::format("{}{}", kWord, statement.check)); },
            in_script);
      },
      [](ErrorCode code) { return code; }, target);
}

bool HasRowidColumn(relational::Connection& connection, const sql::Statement& statement) {
  const columnar::Schema columns =
      DescribeQuery(connection, fmt::format("SELECT * FROM {}", statement.target),
                    relational::ErrorPlaces::kNone);
  return std::any_of(columns.begin(), columns.end(), [](const columnar::Field& column) {
    return sql::SameWord(column.name, "rowid");
  });
}

}  // namespace

void CheckChange(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement) {
  if (statement.kept.empty()) return;
  const TextPosition target =
      base::Locate(script, statement.check_map.ToInput(statement.check.find(statement.target)));
  Bind(connection, script, statement, target);
  if (HasRowidColumn(connection, statement)) {
    throw Error(
        ErrorCode::kUnsupported,
        fmt::format("{} has a column named rowid, which hides the engine's row ids: UPDATE "
                    "and DELETE with AI calls cannot tell its rows apart; rename the column",
                    statement.target),
        target);
  }
  if (IsTaken(connection, statement.kept)) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("a table or view is named {0}: UPDATE and DELETE with AI calls make a "
                            "table of that name; rename it",
                            statement.kept),
                target);
  }
}

}  // namespace quail::session
