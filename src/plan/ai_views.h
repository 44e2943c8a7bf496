#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/catalog.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// A view with AI calls, which the relational engine has under its name with another query in the
/// place of the one that it cannot bind.
struct AiView {
  std::string database;
  std::string schema;
  std::string name;
  std::string query;         ///< as the relational engine reads it
  bool current = false;      ///< its schema is the current one, or it is temporary
  bool in_database = false;  ///< it is in the current database, or temporary
  bool hidden = false;       ///< a temporary table or view has its name
};

/// What the engine has in the place of a view's query: `select`, a SELECT of kStandInColumn with
/// the view's names and types, over a FROM that holds the query. It fails where a row or a value of
/// it is read: kStandInError.
std::string StandInOfView(std::string_view select, std::string_view query);
inline constexpr std::string_view kStandInColumn = "quail_rows";
inline constexpr std::string_view kStandInError =
    "a view with AI calls is read by Quail alone, in queries";
/// What the text of every stand-in contains.
inline constexpr std::string_view kStandInMark = " AS quail_view) WHERE quail_rows";
/// The query that is held by a CREATE VIEW of the engine's; empty where that is another one.
std::string QueryOfStandIn(std::string_view create_sql);
/// A CREATE VIEW of the engine's as it was before a stand-in took the place of its query; itself
/// where none did.
std::string WithoutStandIn(std::string_view create_sql);

/// The views with AI calls that a statement may name: it is bound with their queries in the places
/// of the names.
class AiViews {
 public:
  explicit AiViews(std::vector<AiView> views) : views_(std::move(views)) {}

  bool empty() const { return views_.empty(); }
  const std::vector<AiView>& list() const { return views_; }
  /// Those of a name alone.
  AiViews Named(std::string_view name) const;

  /// Puts the views' queries in the places of their names at or below `node`, and of the names in
  /// these, without locations; whether there was any. What means a query of WITH is none. Throws
  /// Error{kBind} for a view that reads itself.
  bool Expand(sql::Json& node, Catalog& catalog) const;

 private:
  class Expansion;

  std::vector<AiView> views_;
};

}  // namespace quail::plan
