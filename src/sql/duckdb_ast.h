#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// DuckDB's syntax trees as JSON (json_serialize_sql), of 1.5 and of 2.0. A tree stays JSON: what
/// we do not know is kept as it is; these functions read the nodes that we know and hide the
/// differences of the versions.
namespace quail::sql {

using Json = nlohmann::json;

/// The parse of exactly one SELECT statement. Throws Error{kCorrupt} for anything else.
Json ReadTree(std::string_view text);
/// The query node of a tree.
Json& QueryNode(Json& tree);
const Json& QueryNode(const Json& tree);
/// A tree of one statement around a query node.
Json MakeTree(Json node);

/// "FUNCTION", "COLUMN_REF", "CONSTANT" ..; empty for what is no expression.
std::string_view ClassOf(const Json& node);
/// "SELECT_NODE", "BASE_TABLE", "JOIN", "CONJUNCTION_AND" ..; empty if there is none.
std::string_view TypeOf(const Json& node);
bool IsExpression(const Json& node);
/// A SELECT_NODE, SET_OPERATION_NODE, RECURSIVE_CTE_NODE ..
bool IsQueryNode(const Json& node);

/// Bytes into the text that was parsed.
std::optional<std::size_t> LocationOf(const Json& node);
std::string_view AliasOf(const Json& node);
/// A member as text; empty if it is absent or no text.
std::string_view TextMember(const Json& node, const char* key);
/// Whether a node has no such member, or one that is null: optional parts are one or the other.
bool IsAbsent(const Json& node, const char* key);

struct FunctionArgument {
  std::string_view name;  ///< empty: positional
  Json* value = nullptr;
};
/// Lower-case name of a FUNCTION or WINDOW; empty for other nodes.
std::string FunctionName(const Json& node);
std::vector<FunctionArgument> ArgumentsOf(Json& function);

enum class ConstantKind : std::uint8_t { kText, kNumber, kBoolean, kNull, kOther };
struct Constant {
  ConstantKind kind = ConstantKind::kOther;
  std::string text;      ///< kText; a number's digits
  double number = 0;     ///< kNumber
  bool boolean = false;  ///< kBoolean
};
/// The value of a literal; nullopt for other expressions.
std::optional<Constant> ConstantOf(const Json& node);

/// The parts of a COLUMN_REF; empty for other nodes.
std::vector<std::string> ColumnPath(const Json& node);

/// Makes a BASE_TABLE that of another name; empty parts of it are not written.
struct TableName {
  std::string catalog;
  std::string schema;
  std::string table;
};
void SetTableName(Json& table, const TableName& name);

/// Whether `holds` is true of `node` or of anything below it, nested queries included.
template <typename Predicate>
bool AnyNode(const Json& node, const Predicate& holds) {
  if (holds(node)) return true;
  return node.is_structured() && std::any_of(node.begin(), node.end(), [&](const Json& child) {
           return AnyNode(child, holds);
         });
}
/// Whether an expression of that class (ClassOf) is at or below `node`.
bool HasClass(const Json& node, std::string_view kind);

/// Calls `visit` with every object directly below `node`, at any depth of arrays and plain members
/// between.
void ForEachChild(Json& node, const std::function<void(Json&)>& visit);

/// The expressions of a SELECT_NODE itself, in the order of evaluation: WHERE, GROUP BY, HAVING,
/// QUALIFY, the select list, modifiers. JOIN conditions are not among them.
std::vector<Json*> ExpressionsOf(Json& select);
/// Whether an item of a select list is a star.
bool HasStar(const Json& select_list);

/// The names and query nodes of the CTEs that a query node defines, in order.
struct CteEntry {
  std::string name;
  Json* query = nullptr;
  Json* entry = nullptr;  ///< of the cte_map, with the name as its "key"
  bool renamed = false;   ///< WITH names its columns
};
std::vector<CteEntry> CtesOf(Json& node);
/// Those of every query at or below `node`.
std::vector<CteEntry> AllCtesOf(Json& node);

/// Calls `visit` with every BASE_TABLE at or below `node`, which it may replace, and the queries of
/// WITH that are known there, inner ones last: each knows those before it, and itself only in its
/// recursive part.
using TableVisit = std::function<void(Json& table, const std::vector<CteEntry>& known)>;
void ForEachTable(Json& node, const TableVisit& visit);
/// Member of a BASE_TABLE that means a table where a query of WITH has its name, too. The engine
/// ignores it.
inline constexpr const char* kTableMark = "quail_table";
/// The one that a BASE_TABLE means; null for a table.
const CteEntry* FindCte(const std::vector<CteEntry>& known, const Json& table);

}  // namespace quail::sql
