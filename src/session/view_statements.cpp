#include "session/view_statements.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/text_position.h"
#include "plan/binder.h"
#include "relational/quote.h"
#include "session/connection_catalog.h"
#include "session/taken_names.h"
#include "session/user_position.h"
#include "sql/lexer.h"

namespace quail::session {
namespace {

sql::ScriptPart PartOf(const Session::Statement& statement) {
  return {statement.offset, statement.text.size()};
}

}  // namespace

bool ViewStatements::Names(const sql::Statement& read) const {
  using Kind = sql::StatementKind;
  const bool query = read.kind == Kind::kQuery || read.kind == Kind::kExplain ||
                     read.kind == Kind::kExplainAnalyze || read.kind == Kind::kDescribe ||
                     read.kind == Kind::kCreateView;
  if (!query || state_.views.empty()) return false;
  ConnectionCatalog catalog(*state_.connection, state_.functions);
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

void ViewStatements::Follow(const sql::Statement& read) {
  if (read.kind != sql::StatementKind::kOther) return;
  const std::string_view text = read.query;
  const std::string word = sql::UpperCase(text.substr(0, text.find_first_of(" ;\n\t")));
  if (word == "BEGIN" || word == "START") before_ = state_.views;
  if ((word == "ROLLBACK" || word == "ABORT") && before_) state_.views = *std::move(before_);
  if (word == "ROLLBACK" || word == "ABORT" || word == "COMMIT" || word == "END") before_.reset();
  state_.in_transaction = before_.has_value();
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
  ConnectionCatalog catalog(*state_.connection, state_.functions);
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
