#include "session/prepared_statements.h"

#include <fmt/format.h>

#include <utility>

#include "base/text_position.h"
#include "relational/quote.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {
namespace {

sql::ScriptPart PartOf(const Session::Statement& statement) {
  return {statement.offset, statement.text.size()};
}

}  // namespace

bool PreparedStatements::Keep(
    std::string_view script, const Session::Statement& statement,
    const std::function<sql::Statement(const Session::Statement&)>& read) {
  const auto preparation = sql::ReadPreparation(script, PartOf(statement), state_.config.dialect);
  if (!preparation) return false;
  const auto [offset, size] = preparation->inner;
  const Session::Statement inner{std::string(script.substr(offset, size)), offset};
  const std::string name = sql::LowerCase(preparation->name);
  const sql::Statement behind = read(inner);
  if (!behind.has_ai && !views_.Names(behind)) {
    kept_.erase(name);
    return false;
  }
  kept_[name] = {inner.text, state_.config.dialect};
  return true;
}

bool PreparedStatements::Drop(std::string_view script, const Session::Statement& statement) {
  const auto name = sql::ReadDeallocation(script, PartOf(statement), state_.config.dialect);
  if (!name) return false;
  if (!name->empty()) return kept_.erase(sql::LowerCase(*name)) > 0;
  return !std::exchange(kept_, {}).empty();
}

/// A value as a literal, so that it has its type wherever a parameter may stand.
std::string PreparedStatements::LiteralOf(const std::string& sql) {
  const auto rows = relational::QueryText(
      *state_.connection,
      fmt::format("SELECT typeof(v), CAST(v AS VARCHAR) FROM (SELECT ({}\n) AS v)", sql),
      relational::ErrorPlaces::kNone);
  const std::string type = rows[0][0].value_or("");
  const auto& value = rows[0][1];
  if (type == "\"NULL\"") return "NULL";
  if (!value) return fmt::format("CAST(NULL AS {})", type);
  if (type == "VARCHAR") return relational::QuoteText(*value);
  if (type == "INTEGER" || type == "BOOLEAN") return fmt::format("({})", *value);
  return fmt::format("CAST({} AS {})", relational::QuoteText(*value), type);
}

std::optional<PreparedStatements::Execution> PreparedStatements::Find(
    std::string_view script, const Session::Statement& statement) {
  if (kept_.empty()) return std::nullopt;
  const auto execution = sql::ReadExecution(script, PartOf(statement), state_.config.dialect);
  if (!execution) return std::nullopt;
  const auto found = kept_.find(sql::LowerCase(execution->name));
  if (found == kept_.end()) return std::nullopt;
  const TextPosition place = base::Locate(script, statement.offset);
  std::vector<sql::ParameterValue> values;
  for (const sql::Execution::Value& value : execution->values) {
    Recoded(
        [&] {
          values.push_back({value.parameter, LiteralOf(value.sql)});
        },
        [](ErrorCode code) { return code; }, place);
  }
  Execution made{execution->name, found->second.text, {}};
  const sql::ScriptPart part{0, made.text.size()};
  Reworded([&] { made.read = sql::ReadStatement(made.text, part, found->second.dialect, values); },
           [&](const Error& error) { return Reword(error, made, script, statement); });
  return made;
}

Error PreparedStatements::Reword(const Error& error, const Execution& execution,
                                 std::string_view script, const Session::Statement& statement) {
  const std::string where = error.position()
                                ? fmt::format(" (its line {}, column {})", error.position()->line,
                                              error.position()->column)
                                : "";
  return Error(
      error.code(),
      fmt::format("in the prepared statement {}{}: {}", execution.name, where, error.what()),
      base::Locate(script, statement.offset));
}

}  // namespace quail::session
