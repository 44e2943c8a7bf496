#include "plan/sql_writer.h"

#include "base/check.h"
#include "fmt/format.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

SqlWriter::SqlWriter(Catalog& catalog) : catalog_(catalog) {
  Json tree = sql::ReadTree(catalog_.Parse("SELECT *, TRUE, TRUE AND TRUE"));
  select_ = std::move(sql::QueryNode(tree));
  Json& list = select_["select_list"];
  QUAIL_CHECK_EQ(list.size(), 3U);
  star_ = std::move(list[0]);
  truth_ = std::move(list[1]);
  and_ = std::move(list[2]);
  list = Json::array();
}

Json SqlWriter::ParseExpression(std::string_view sql) const {
  Json tree = sql::ReadTree(catalog_.Parse(fmt::format("SELECT {}", sql)));
  return std::move(sql::QueryNode(tree)["select_list"][0]);
}

Json SqlWriter::ParseTable(std::string_view table, std::string_view alias) const {
  return ParseFrom(
      fmt::format("{} AS {}", sql::QuoteIdentifier(table), sql::QuoteIdentifier(alias)));
}

Json SqlWriter::ParseFrom(std::string_view from) const {
  Json tree = sql::ReadTree(catalog_.Parse(fmt::format("SELECT 1 FROM {}", from)));
  return std::move(sql::QueryNode(tree)["from_table"]);
}

Json SqlWriter::CrossJoin(Json left, std::string_view table) const {
  const std::string name = sql::QuoteIdentifier(table);
  Json join = ParseFrom(fmt::format("{0} AS {0} CROSS JOIN {0} AS {0}", name));
  join["left"] = std::move(left);
  return join;
}

Json SqlWriter::ParseOrders(std::string_view orders) const {
  Json tree = sql::ReadTree(catalog_.Parse(fmt::format("SELECT 1 ORDER BY {}", orders)));
  return std::move(sql::QueryNode(tree)["modifiers"][0]);
}

std::string SqlWriter::PrintQuery(const Json& node) const {
  Json copy = node;
  NameCrossJoins(copy, false);
  return catalog_.Print(sql::MakeTree(std::move(copy)).dump());
}

/// DuckDB prints a cross join as a comma, which binds less tightly than the join around it.
void SqlWriter::NameCrossJoins(Json& node, bool inside_join) const {
  const bool is_join = sql::TypeOf(node) == "JOIN";
  const bool is_cross = is_join && sql::TextMember(node, "ref_type") == "CROSS";
  if (is_cross && inside_join) {
    node["ref_type"] = "REGULAR";
    node["join_type"] = "INNER";
    node["condition"] = truth_;
  }
  const bool binds = is_join && (inside_join || !is_cross);
  sql::ForEachChild(node,
                    [&](Json& child) { NameCrossJoins(child, binds && !sql::IsQueryNode(child)); });
}

std::string SqlWriter::PrintExpression(const Json& expression) const {
  constexpr std::string_view kSelect = "SELECT ";
  Json copy = expression;
  copy["alias"] = "";
  const std::string sql = PrintQuery(MakeSelect({std::move(copy)}, nullptr, {}));
  QUAIL_CHECK(sql.starts_with(kSelect));
  return sql.substr(kSelect.size());
}

Json SqlWriter::MakeSelect(std::vector<Json> list, Json from, std::vector<Json> terms) const {
  Json node = select_;
  node["select_list"] = std::move(list);
  if (!from.is_null()) node["from_table"] = std::move(from);
  node["where_clause"] = MakeAnd(std::move(terms));
  return node;
}

Json SqlWriter::MakeAnd(std::vector<Json> terms) const {
  if (terms.empty()) return nullptr;
  if (terms.size() == 1) return std::move(terms[0]);
  Json conjunction = and_;
  conjunction["children"] = std::move(terms);
  return conjunction;
}

std::string ColumnSql(std::string_view alias, std::string_view column) {
  return fmt::format("{}.{}", sql::QuoteIdentifier(alias), sql::QuoteIdentifier(column));
}

}  // namespace quail::plan
