#include "relational/sql_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/text_position.h"
#include "quail/error.h"
#include "relational/duckdb_error.h"
#include "relational/quote.h"

namespace quail::relational {
namespace {

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void RefuseNul(std::string_view sql) {
  const std::size_t nul = sql.find('\0');
  if (nul == sql.npos) return;
  throw Error(ErrorCode::kSyntax, "a NUL character in SQL text", base::Locate(sql, nul));
}

/// {"error":true,"error_type":"parser","error_message":..,"position":"14"}
[[noreturn]] void ThrowReported(const nlohmann::json& report, std::string_view sql) {
  const bool not_select = TextOf(report, "error_type") == "not implemented";
  throw Error(not_select ? ErrorCode::kUnsupported : ErrorCode::kSyntax,
              TextOf(report, "error_message"), ReportedPosition(report, sql));
}

/// The one cell of a query's result.
std::string SingleText(Connection& connection, const std::string& sql) {
  const auto rows = QueryText(connection, sql);
  QUAIL_CHECK(rows.size() == 1 && rows[0].size() == 1 && rows[0][0].has_value());
  return *rows[0][0];
}

}  // namespace

std::string SerializeSql(Connection& connection, std::string_view sql) {
  RefuseNul(sql);
  std::string json =
      SingleText(connection, fmt::format("SELECT json_serialize_sql({}::VARCHAR)", QuoteText(sql)));
  // Every tree begins with its error flag; only a report of an error is parsed here.
  if (!json.starts_with(R"({"error":false)")) {
    const auto report = nlohmann::json::parse(json, nullptr, false);
    QUAIL_CHECK(report.is_object());
    if (report.value("error", false)) ThrowReported(report, sql);
  }
  return json;
}

std::string DeserializeSql(Connection& connection, std::string_view json) {
  RefuseNul(json);
  return SingleText(connection,
                    fmt::format("SELECT json_deserialize_sql({}::JSON)", QuoteText(json)));
}

}  // namespace quail::relational
