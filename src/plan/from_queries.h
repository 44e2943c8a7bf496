#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sql/duckdb_ast.h"

namespace quail::plan {

/// A query among the items of FROM.
struct FromQuery {
  sql::Json* item = nullptr;
  sql::Json* query = nullptr;
  bool inner = false;  ///< no join above it adds rows without it, or takes some by their position
};

/// The queries of WITH that one FROM reads, by name in lower case. REQUIRES: NameCtesApart.
using ReadOnce = std::map<std::string, sql::Json*>;
ReadOnce CtesReadOnce(sql::Json& tree);

/// Adds the queries of FROM that are a SELECT; false where it has items whose columns are not named
/// by those who read them.
bool CollectQueries(sql::Json& from, bool inner, const ReadOnce& ctes,
                    std::vector<FromQuery>& found);

/// By which the columns of an item may be qualified; empty: by no name that is known here.
std::string_view NameOf(const sql::Json& item);

/// The names by which the columns are known outside, empty where that is not told here; nullopt
/// where positions are not either.
std::optional<std::vector<std::string>> NamesOutside(const FromQuery& from);

}  // namespace quail::plan
