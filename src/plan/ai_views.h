#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/catalog.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Views with AI calls, kept by a session because the relational engine cannot bind them: a
/// statement that names one is bound with its query in that place. The queries are stored with the
/// views they name already in place, so no view contains another.
class AiViews {
 public:
  bool empty() const { return views_.empty(); }
  bool contains(std::string_view name) const;
  /// Keeps `query` (a query node), which has gone through Expand. Replaces an older view.
  void Keep(const std::string& name, sql::Json query, std::vector<std::string> columns);
  /// Whether there was one.
  bool Drop(std::string_view name);

  /// The view that an error message of the engine says does not exist; empty if it tells of none.
  std::string NotFoundIn(std::string_view message) const;

  /// Puts the views' queries in the places of their names at or below `node`, without locations;
  /// whether there was any. Names that are CTEs of the same statement are those.
  bool Expand(sql::Json& node, Catalog& catalog) const;

 private:
  struct View {
    sql::Json query;
    std::vector<std::string> columns;
  };
  sql::Json Item(const View& view, const sql::Json& table, Catalog& catalog) const;
  bool ExpandBelow(sql::Json& node, const std::vector<std::string>& ctes, Catalog& catalog) const;

  std::map<std::string, View> views_;  ///< by name in lower case
};

}  // namespace quail::plan
