#include <fmt/format.h>

#include <cmath>

#include "columnar/layout.h"
#include "quail/error.h"
#include "relational/connection.h"

namespace quail::relational {
namespace {

using Cell = std::optional<std::string>;

/// As DuckDB prints doubles: the shortest text that reads back, with a point or an exponent.
std::string RealText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string CellText(const columnar::Batch& batch, std::size_t column, std::size_t row,
                     const columnar::Field& field) {
  if (field.type == "BOOLEAN") return batch.Boolean(column, row) ? "true" : "false";
  if (field.type == "DOUBLE" || field.type == "FLOAT") return RealText(batch.Real(column, row));
  if (field.type.ends_with("INT") || field.type.ends_with("INTEGER")) {
    return std::to_string(batch.Integer(column, row));
  }
  if (field.type == "VARCHAR" || field.type == "JSON" || field.type.starts_with("ENUM")) {
    return std::string(batch.Text(column, row));
  }
  throw Error(ErrorCode::kUnsupported,
              fmt::format("column '{}' of type {} cannot be read as text: cast it to VARCHAR",
                          field.name, field.type));
}

std::vector<std::vector<Cell>> QueryText(Connection& connection, std::string_view sql,
                                         ErrorPlaces places) {
  const auto stream = connection.Query(sql, places);
  const columnar::Schema& schema = stream->schema();
  std::vector<std::vector<Cell>> rows;
  while (const auto batch = stream->Next()) {
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      auto& cells = rows.emplace_back(schema.size());
      for (std::size_t column = 0; column < schema.size(); ++column) {
        if (!batch->IsNull(column, row)) {
          cells[column] = CellText(*batch, column, row, schema[column]);
        }
      }
    }
  }
  return rows;
}

}  // namespace quail::relational
