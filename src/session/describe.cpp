#include "session/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/text_position.h"
#include "plan/unnamed_structs.h"
#include "relational/quote.h"
#include "session/user_position.h"

namespace quail::session {

columnar::Schema DescribeQuery(relational::Connection& connection, std::string_view query,
                               relational::ErrorPlaces places) {
  constexpr std::string_view kPrefix = "SELECT column_name, column_type FROM (DESCRIBE ";
  // The closing parenthesis on a line of its own: the query may end in a comment.
  const std::string sql = std::string(kPrefix) + std::string(query) + "\n)";
  const auto rows = Located([&] { return relational::QueryText(connection, sql, places); },
                            [&](const TextPosition& position) {
                              const std::size_t before = std::min(position.offset, kPrefix.size());
                              return std::optional(base::Locate(query, position.offset - before));
                            });
  columnar::Schema schema;
  for (const auto& row : rows) schema.push_back({row[0].value_or(""), row[1].value_or("")});
  return schema;
}

std::string SelectTyped(std::string_view value, const columnar::Schema& columns) {
  std::string sql = "SELECT";
  for (const columnar::Field& column : columns) {
    const bool typed = column.type != "\"NULL\"";
    sql += fmt::format(
        "{} {} AS {}", &column == columns.data() ? "" : ",",
        typed ? plan::WithoutNames(
                    fmt::format("CAST({} AS {})", value, plan::NamedType(column.type)), column.type)
              : value,
        relational::QuoteName(column.name));
  }
  return sql;
}

}  // namespace quail::session
