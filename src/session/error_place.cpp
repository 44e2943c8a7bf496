#include "session/error_place.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text_position.h"
#include "plan/compared_constants.h"
#include "relational/file_table.h"
#include "session/settings.h"
#include "sql/duckdb_ast.h"
#include "sql/lexer.h"
#include "sql/statement.h"

namespace quail::session {
namespace {

/// What the first line of a message has in quotes or names behind "with name ".
std::vector<std::string> QuotedIn(std::string_view message) {
  constexpr std::string_view kNamed = "with name ";
  const std::string_view line = message.substr(0, message.find('\n'));
  std::vector<std::string> quoted;
  if (const std::size_t at = line.find(kNamed); at != line.npos) {
    std::string_view rest = line.substr(at + kNamed.size());
    if (rest.starts_with('"')) rest.remove_prefix(1);
    rest = rest.substr(0, rest.find('"'));
    quoted.emplace_back(rest.substr(0, rest.find(" does not exist")));
  }
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '"' && line[i] != '\'') continue;
    const std::size_t end = line.find(line[i], i + 1);
    if (end == line.npos) break;
    quoted.emplace_back(line.substr(i + 1, end - i - 1));
    i = end;
  }
  return quoted;
}

bool IsAboutText(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kSyntax:
    case ErrorCode::kUnfinished:
    case ErrorCode::kBind:
    case ErrorCode::kUnsupported:
    case ErrorCode::kQuery:
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
    case ErrorCode::kBudget:
      return true;
    case ErrorCode::kModel:
    case ErrorCode::kDevice:
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kInterrupted:
      return false;
  }
  return false;
}

/// The engine takes the name of a file that only Quail reads for a table's.
Error NamedAsFile(const Error& error, const std::vector<std::string>& quoted) {
  const std::string_view message = error.what();
  const bool missing = message.starts_with("Table with name ") && !quoted.empty() &&
                       relational::IsIpcFile(quoted[0]);
  if (!missing) return error;
  return {ErrorCode::kIo, fmt::format("no file matches '{}'", quoted[0]), error.position()};
}

/// The engine knows its own settings only.
Error NamedAsSetting(const Error& error, const std::vector<std::string>& quoted) {
  const std::string_view message = error.what();
  const bool looked_up = message.starts_with("unrecognized configuration parameter ") ||
                         message.starts_with("Table with name ");  // SHOW
  if (!looked_up || quoted.empty()) return error;
  for (const auto& [name, value] : Settings().List()) {
    if (!sql::SameWord(name, quoted[0])) continue;
    return {ErrorCode::kBind,
            fmt::format("{0} is a setting of Quail's: SELECT value FROM quail_settings() WHERE "
                        "name = '{0}' reads it",
                        name),
            error.position()};
  }
  return error;
}

/// A function that the engine knows in no place of its own: it is a part of AI calls.
Error NamedAsPart(const Error& error, const std::vector<std::string>& quoted) {
  if (quoted.empty() || !std::string_view(error.what()).starts_with("Scalar Function with name ")) {
    return error;
  }
  if (!sql::SameWord(quoted[0], "prompt")) return error;
  return {ErrorCode::kBind,
          "PROMPT(..) has no value of its own: it stands in a call, as in "
          "AI_FILTER(PROMPT('Is {0} good?', x))",
          error.position()};
}

}  // namespace

Error WithPlace(const Error& error, std::string_view script, const Session::Statement& statement,
                Dialect dialect) {
  if (!IsAboutText(error.code())) return error;
  const sql::ScriptPart part{statement.offset, statement.text.size()};
  const std::vector<std::string> quoted = QuotedIn(error.what());
  Error told = NamedAsPart(NamedAsSetting(NamedAsFile(error, quoted), quoted), quoted);
  if (told.position()) return told;
  std::optional<std::size_t> at;
  if (std::string_view(told.what()).starts_with("Values were not provided for")) {
    at = sql::FindParameter(script, part, dialect);
  }
  for (const std::string& name : quoted) {
    // What failed while it ran quotes values: an equal text of the statement need not be to blame.
    std::error_code ignored;
    const bool blamed = told.code() != ErrorCode::kQuery || std::filesystem::exists(name, ignored);
    if (!at && blamed) at = sql::FindName(script, part, dialect, name);
  }
  // An option's value is no text of the statement.
  if (!at && told.code() == ErrorCode::kUsage) return told;
  return {told.code(), told.what(), base::Locate(script, at.value_or(statement.offset))};
}

std::optional<std::size_t> OffsetOfConstant(const Error& error, const std::string& query,
                                            plan::Catalog& catalog) {
  constexpr std::string_view kBefore = "Could not convert string '";
  const std::string_view message = error.what();
  const bool of_column = message.find(" when casting from source column ") != message.npos;
  if (!message.starts_with(kBefore) || of_column) return std::nullopt;
  const std::string_view text =
      message.substr(kBefore.size(), message.find("' to ") - kBefore.size());
  const sql::Json tree = sql::ReadTree(catalog.Parse(query));
  if (sql::HasClass(tree, "CAST")) return std::nullopt;
  for (const plan::ComparedConstant& compared : plan::ComparedConstants(tree)) {
    if (compared.text == text) return sql::LocationOf(*compared.constant);
  }
  return std::nullopt;
}

}  // namespace quail::session
