#pragma once

#include <string>
#include <string_view>

#include "columnar/batch.h"
#include "relational/connection.h"

namespace quail::session {

/// Names and types of a query's columns; nothing is run. Errors have positions in `query`.
columnar::Schema DescribeQuery(relational::Connection& connection, std::string_view query,
                               relational::ErrorPlaces places = relational::ErrorPlaces::kInSql);

/// A SELECT list of `value`, which is SQL of a NULL, with these names and types.
std::string SelectTyped(std::string_view value, const columnar::Schema& columns);

}  // namespace quail::session
