#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/catalog.h"
#include "sql/duckdb_ast.h"

namespace quail::plan {

/// Trees to SQL and back, through the relational engine: the engine's own shape of nodes is never
/// built by hand.
class SqlWriter {
 public:
  explicit SqlWriter(Catalog& catalog);

  sql::Json ParseExpression(std::string_view sql) const;
  /// The tree of `FROM table AS alias`.
  sql::Json ParseTable(std::string_view table, std::string_view alias) const;

  /// The tree of `left CROSS JOIN table AS table`.
  sql::Json CrossJoin(sql::Json left, std::string_view table) const;

  /// The tree of `FROM from`.
  sql::Json ParseFrom(std::string_view from) const;
  /// The ORDER_MODIFIER of `ORDER BY orders`.
  sql::Json ParseOrders(std::string_view orders) const;

  /// `expression` without its alias.
  std::string PrintExpression(const sql::Json& expression) const;
  std::string PrintQuery(const sql::Json& node) const;

  /// SELECT list FROM from WHERE terms.., as a query node. A null `from` means none.
  sql::Json MakeSelect(std::vector<sql::Json> list, sql::Json from,
                       std::vector<sql::Json> terms) const;
  /// AND of all; null for none.
  sql::Json MakeAnd(std::vector<sql::Json> terms) const;
  const sql::Json& star() const { return star_; }
  const sql::Json& truth() const { return truth_; }
  Catalog& catalog() const { return catalog_; }

 private:
  void NameCrossJoins(sql::Json& node, bool inside_join) const;
  Catalog& catalog_;
  sql::Json select_;  ///< SELECT 1
  sql::Json star_;
  sql::Json truth_;
  sql::Json and_;
};

/// "a"."b"
std::string ColumnSql(std::string_view alias, std::string_view column);

}  // namespace quail::plan
