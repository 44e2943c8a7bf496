#include "session/view_statements.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text_position.h"
#include "plan/binder.h"
#include "plan/sql_writer.h"
#include "relational/quote.h"
#include "session/connection_catalog.h"
#include "session/describe.h"
#include "session/user_position.h"

namespace quail::session {
namespace {

sql::ScriptPart PartOf(const Session::Statement& statement) {
  return {statement.offset, statement.text.size()};
}

std::vector<plan::AiView> ReadViews(relational::Connection& connection) {
  std::vector<plan::AiView> views;
  const std::string sql = fmt::format(
      "WITH hiding AS (SELECT lower(table_name) AS name FROM duckdb_tables() WHERE temporary UNION "
      "ALL SELECT lower(view_name) FROM duckdb_views() WHERE temporary AND NOT internal) SELECT "
      "database_name, schema_name, view_name, sql, temporary OR database_name = current_database() "
      "AND schema_name = current_schema(), temporary OR database_name = current_database(), NOT "
      "temporary AND lower(view_name) IN (FROM hiding) FROM duckdb_views() WHERE NOT internal AND "
      "contains(sql, {})",
      relational::QuoteText(plan::kStandInMark));
  for (const auto& row : relational::QueryText(connection, sql, relational::ErrorPlaces::kNone)) {
    const auto is = [&row](std::size_t cell) { return row[cell] == "true"; };
    std::string query = plan::QueryOfStandIn(row[3].value_or(""));
    if (query.empty()) continue;
    views.push_back({row[0].value_or(""), row[1].value_or(""), row[2].value_or(""),
                     std::move(query), is(4), is(5), is(6)});
  }
  return views;
}

/// The types of a query with AI calls, which nobody asks.
columnar::Schema DescribeAsking(SessionState& state, std::string_view script,
                                const sql::Statement& query) {
  ConnectionCatalog catalog(*state.connection, state.functions);
  const plan::LogicalPlan plan =
      plan::Bind({script, query, "quail_r", &KnownViews(state)}, catalog);
  const auto run = [&state](const std::string& sql) {
    relational::QueryText(*state.connection, sql, relational::ErrorPlaces::kNone);
  };
  const auto tidy_up = [&] {
    for (const std::string& sql : plan.cleanup_sql) {
      Quietly([&] { state.connection->TidyUp(sql); });
    }
  };
  columnar::Schema columns;
  Observed(
      [&] {
        for (const plan::Relation& relation : plan.relations) run(relation.create_sql);
        for (const std::string& sql : plan.pair_tables_sql) run(sql);
        columns = DescribeQuery(*state.connection, plan.rows_sql, relational::ErrorPlaces::kNone);
      },
      [&](const Error&) { tidy_up(); });
  tidy_up();
  return columns;
}

}  // namespace

const plan::AiViews& KnownViews(SessionState& state) {
  if (!state.views) state.views.emplace(ReadViews(*state.connection));
  return *state.views;
}

void RegisterViewSql(relational::Connection& connection) {
  using relational::ScalarType;
  connection.Register({"quail_view_sql",
                       {ScalarType::kText},
                       std::nullopt,
                       ScalarType::kText,
                       [](auto arguments, std::size_t rows, relational::ScalarOutput& out) {
                         for (std::size_t row = 0; row < rows; ++row) {
                           if (arguments[0].is_null(row)) {
                             out.SetNull(row);
                           } else {
                             out.SetText(row, plan::WithoutStandIn(arguments[0].texts[row]));
                           }
                         }
                       }});
}

bool ViewStatements::Names(const sql::Statement& read) const {
  using Kind = sql::StatementKind;
  const bool query = read.kind == Kind::kQuery || read.kind == Kind::kExplain ||
                     read.kind == Kind::kExplainAnalyze || read.kind == Kind::kDescribe ||
                     read.kind == Kind::kCreateView;
  if (!query || KnownViews(state_).empty()) return false;
  ConnectionCatalog catalog(*state_.connection, state_.functions);
  sql::Json tree = sql::ReadTree(catalog.Parse(read.query));
  return KnownViews(state_).Expand(tree, catalog);
}

std::optional<sql::Statement> ViewStatements::ReadOver(std::string_view script,
                                                       const Session::Statement& statement) const {
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

sql::Statement ViewStatements::WithStandIn(std::string_view script, sql::Statement read) const {
  ConnectionCatalog catalog(*state_.connection, state_.functions);
  sql::Json tree = sql::ReadTree(catalog.Parse(read.query));
  // The view that is replaced may be read by the new one alone.
  if (read.or_replace) KnownViews(state_).Named(read.view).Expand(tree, catalog);
  sql::Statement query = read;
  query.kind = sql::StatementKind::kDescribe;
  query.before.clear();
  const columnar::Schema columns = DescribeAsking(state_, script, query);
  std::string text = plan::SqlWriter(catalog).PrintQuery(sql::QueryNode(tree));
  if (!read.view_columns.empty()) {
    std::string names;
    for (const std::string& name : read.view_columns) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", relational::QuoteName(name));
    }
    text = fmt::format("SELECT * FROM ({}) AS quail_view({})", text, names);
  }
  const std::size_t begin = read.map.ToInput(0);
  read.query = plan::StandInOfView(SelectTyped(plan::kStandInColumn, columns), text);
  read.map = {};
  read.map.Stay(0, begin);
  read.has_ai = false;
  return read;
}

Error ViewStatements::Reword(const Error& error, std::string_view script,
                             const Session::Statement& statement) const {
  if (std::string_view(error.what()).find(plan::kStandInError) == std::string_view::npos) {
    return error;
  }
  Quietly([&] { KnownViews(state_); });  // not in a transaction that the error ended
  const auto views = state_.views ? state_.views->list() : std::vector<plan::AiView>();
  for (const plan::AiView& view : views) {
    const auto at = sql::FindName(script, PartOf(statement), state_.config.dialect, view.name);
    if (!at) continue;
    return Error(
        ErrorCode::kUnsupported,
        fmt::format("{} is a view with AI calls: it can be read in queries, not stand here",
                    view.name),
        base::Locate(script, *at));
  }
  return Error(ErrorCode::kUnsupported, error.what(), error.position());
}

}  // namespace quail::session
