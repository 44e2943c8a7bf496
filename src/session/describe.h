#pragma once

#include <string_view>

#include "columnar/batch.h"
#include "relational/connection.h"

namespace quail::session {

/// Names and types of a query's columns; nothing is run. Errors have positions in `query`.
columnar::Schema DescribeQuery(relational::Connection& connection, std::string_view query,
                               relational::ErrorPlaces places = relational::ErrorPlaces::kInSql);

}  // namespace quail::session
