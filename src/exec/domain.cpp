#include "exec/domain.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"

namespace quail::exec {
namespace {

/// Reads rows of `width` text ids and a count.
Domain Read(relational::Connection& connection, const std::string& sql, std::size_t width) {
  Domain domain;
  domain.width = width;
  const auto stream = connection.Query(sql, relational::ErrorPlaces::kNone);
  while (auto batch = stream->Next()) {
    QUAIL_CHECK(batch->columns() >= width + 1);
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      for (std::size_t column = 0; column < width; ++column) {
        domain.ids.push_back(batch->IsNull(column, row)
                                 ? kNullText
                                 : TextId(static_cast<std::uint32_t>(batch->Integer(column, row))));
      }
      domain.weights.push_back(static_cast<std::uint64_t>(batch->Integer(width, row)));
    }
  }
  return domain;
}

}  // namespace

std::uint64_t Domain::total_weight() const {
  return std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
}

Domain ReadDomain(relational::Connection& connection, std::string_view select, std::size_t width) {
  if (width == 0) {
    return Read(connection, fmt::format("SELECT count(*) FROM ({}) HAVING count(*) > 0", select),
                0);
  }
  std::string names;
  for (std::size_t i = 0; i < width; ++i) names += fmt::format("{}q{}", i == 0 ? "" : ", ", i);
  return Read(connection,
              fmt::format("SELECT {0}, count(*) FROM ({1}) AS d({0}) GROUP BY ALL", names, select),
              width);
}

Domain ReadTableDomain(relational::Connection& connection, std::string_view table,
                       std::span<const std::string> columns, std::string_view where) {
  const std::string condition = where.empty() ? "" : fmt::format(" WHERE {}", where);
  if (columns.empty()) {
    return Read(connection,
                fmt::format("SELECT count(*) FROM {}{} HAVING count(*) > 0", table, condition), 0);
  }
  const std::string names = fmt::format("{}", fmt::join(columns, ", "));
  return Read(connection,
              fmt::format("SELECT {0}, count(*) FROM {1}{2} GROUP BY {0} ORDER BY min(quail_row)",
                          names, table, condition),
              columns.size());
}

}  // namespace quail::exec
