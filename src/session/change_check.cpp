#include "session/change_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text_position.h"
#include "plan/unnamed_structs.h"
#include "session/describe.h"
#include "session/taken_names.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {

namespace {

/// Only a check explains the statement: the user did not.
Error OfReadOnly(const Error& error) {
  const std::string_view message = error.what();
  constexpr std::string_view kHead = "Cannot execute statement of type \"EXPLAIN\" on database ";
  if (!message.starts_with(kHead)) return error;
  return {error.code(), fmt::format("cannot change database {}", message.substr(kHead.size())),
          error.position()};
}

/// Binds a statement. Throws what the engine says of it.
void Explain(relational::Connection& connection, const std::string& explain_sql) {
  Reworded([&] { relational::QueryText(connection, explain_sql); }, OfReadOnly);
}

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
        Located([&] { Explain(connection, fmt::format("{}{}", kWord, statement.check)); },
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

void BindEffect(relational::Connection& connection, std::string_view script,
                const sql::Statement& statement, const columnar::Schema& rows) {
  const std::string before = fmt::format("EXPLAIN {}", statement.before);
  const std::string query = SelectTyped("NULL", rows) + " WHERE FALSE";
  const std::size_t word = before.size() - statement.before.size();
  const auto in_script = [&](const TextPosition& position) -> std::optional<TextPosition> {
    std::size_t offset = position.offset;
    if (offset < word) return std::nullopt;
    if (offset < before.size()) {
      return base::Locate(script, statement.before_map.ToInput(offset - word));
    }
    offset -= before.size();
    if (offset < query.size() || statement.after.empty()) return statement.Locate(script, 0);
    return base::Locate(script, statement.after_map.ToInput(offset - query.size()));
  };
  Located([&] { Explain(connection, before + query + statement.after); }, in_script);
}

/// New values of an UPDATE stand behind the row's id, as its columns do in `check`.
void RefuseUnnamedStructs(std::string_view script, const sql::Statement& statement,
                          const columnar::Schema& rows) {
  std::size_t column = statement.check.find(" SET ") + 5;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (plan::HasUnnamedStruct(rows[i].type)) {
      throw Error(ErrorCode::kUnsupported,
                  "a struct without names as the new value of an UPDATE with AI calls is not "
                  "supported: write {'member': value, ..}",
                  base::Locate(script, statement.check_map.ToInput(column)));
    }
    column = statement.check.find(',', column) + 2;
  }
}

/// As far as it is known before it is opened.
void CheckFile(std::string_view script, const sql::Statement& statement) {
  namespace fs = std::filesystem;
  const std::string& file = statement.file;
  if (file.empty() || file.starts_with('~') || file.find("://") != std::string::npos) return;
  const auto fail = [&](std::string_view reason) {
    throw Error(ErrorCode::kIo, fmt::format("cannot write '{}': {}", file, reason),
                base::Locate(script, statement.file_offset));
  };
  std::error_code ignored;
  const auto writable = [](const fs::path& path, int mode) {
    return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
  };
  const bool is_folder = fs::is_directory(file, ignored);
  if (is_folder && !statement.many_files) fail("it is a folder");
  const fs::path parent = fs::path(file).parent_path();
  const fs::path folder = is_folder ? fs::path(file) : parent.empty() ? fs::path(".") : parent;
  if (!fs::is_directory(folder, ignored)) fail("there is no such folder");
  // The engine puts a new file in the place of a regular one; a device or a pipe it writes.
  const bool in_place =
      !is_folder && fs::exists(file, ignored) && !fs::is_regular_file(file, ignored);
  const bool may = in_place ? writable(file, W_OK) : writable(folder, W_OK | X_OK);
  if (!may) fail(fmt::format("{}", std::strerror(errno)));
}

}  // namespace

bool CheckEffect(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement, const columnar::Schema& rows) {
  if (statement.before.empty()) return true;
  if (!statement.kept.empty()) {
    RefuseUnnamedStructs(script, statement, rows);
    return true;
  }
  BindEffect(connection, script, statement, rows);
  CheckFile(script, statement);
  if (statement.table.empty()) return true;
  const std::string taken_by =
      KindAt(connection, statement.table_path, statement.temporary, statement.table);
  if (taken_by.empty() || (statement.or_replace && taken_by == "table")) return true;
  if (statement.if_not_exists && taken_by == "table") return false;
  throw Error(ErrorCode::kBind,
              fmt::format("there is a {} named \"{}\" already", taken_by, statement.table),
              base::Locate(script, statement.table_offset));
}

void CheckChange(relational::Connection& connection, std::string_view script,
                 const sql::Statement& statement) {
  if (statement.kept.empty()) return;
  Located([&] { connection.CheckSyntax(statement.whole); },
          [&](const TextPosition& position) -> std::optional<TextPosition> {
            return base::Locate(script, statement.whole_map.ToInput(position.offset));
          });
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

Error OfChange(const Error& error) {
  const std::string_view message = error.what();
  const std::size_t source = message.find(" when casting from source column quail_value_");
  return {error.code(), std::string(message.substr(0, source)), error.position()};
}

}  // namespace quail::session
