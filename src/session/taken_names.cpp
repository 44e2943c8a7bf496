#include "session/taken_names.h"

#include <fmt/format.h>

#include "relational/quote.h"

namespace quail::session {
namespace {

/// The first cell of `select`, if it has a row; it reads the relation `names`.
std::string FirstOf(relational::Connection& connection, std::string_view select) {
  const auto rows = relational::QueryText(
      connection,
      fmt::format("WITH names AS (SELECT 'table' AS kind, lower(table_name) AS name, "
                  "database_name, schema_name, temporary FROM duckdb_tables() UNION ALL SELECT "
                  "'view', lower(view_name), database_name, schema_name, temporary FROM "
                  "duckdb_views()) {} LIMIT 1",
                  select),
      relational::ErrorPlaces::kNone);
  return rows.empty() ? "" : rows[0][0].value_or("");
}

}  // namespace

std::string KindAt(relational::Connection& connection, std::span<const std::string> path,
                   bool temporary, std::string_view name) {
  const auto is = [](std::string_view column, std::string_view word) {
    return fmt::format("lower({}) = lower({})", column, relational::QuoteText(word));
  };
  std::string place = "database_name = current_database() AND schema_name = current_schema()";
  if (path.size() == 1) {
    place =
        fmt::format("(database_name = current_database() AND {} OR {} AND schema_name = 'main')",
                    is("schema_name", path[0]), is("database_name", path[0]));
  } else if (path.size() > 1) {
    place = fmt::format("{} AND {}", is("database_name", path[0]), is("schema_name", path[1]));
  } else if (temporary) {
    place = "database_name = 'temp'";
  }
  return FirstOf(connection,
                 fmt::format("SELECT kind FROM names WHERE {} AND {}", is("name", name), place));
}

bool IsTaken(relational::Connection& connection, std::string_view name) {
  return !FirstOf(connection, fmt::format("SELECT kind FROM names WHERE name = lower({})",
                                          relational::QuoteText(name)))
              .empty();
}

std::string FreePrefix(relational::Connection& connection) {
  const auto begins_a_name = [&](const std::string& prefix) {
    return !FirstOf(connection,
                    fmt::format("SELECT kind FROM names WHERE starts_with(name, '{}')", prefix))
                .empty();
  };
  std::string prefix = "quail_r";
  for (int next = 1; begins_a_name(prefix); ++next) prefix = fmt::format("quail_{}_r", next);
  return prefix;
}

}  // namespace quail::session
