#include "plan/binder.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"
#include "plan/compared_constants.h"
#include "plan/cte_names.h"
#include "plan/exists_form.h"
#include "plan/hidden_reads.h"
#include "plan/method_calls.h"
#include "plan/narrow_from.h"
#include "plan/result_names.h"
#include "plan/stand_in.h"
#include "plan/struct_conditions.h"
#include "plan/unnamed_structs.h"
#include "plan/volatile_functions.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

struct Nested {
  Json* query = nullptr;
  bool exists = false;  ///< of an EXISTS or NOT EXISTS
};

/// Query nodes that stand directly below `node`.
void FindNested(Json& node, bool exists, std::vector<Nested>& found) {
  const std::string_view type = sql::TextMember(node, "subquery_type");
  if (sql::ClassOf(node) == "SUBQUERY") exists = type == "EXISTS" || type == "NOT_EXISTS";
  sql::ForEachChild(node, [&](Json& child) {
    if (sql::IsQueryNode(child)) {
      found.push_back({&child, exists});
    } else {
      FindNested(child, exists, found);
    }
  });
}

/// Whether the block itself asks, outside of nested queries.
bool BlockAsks(const Json& node, bool top) {
  if (IsAiCall(node)) return true;
  if (!node.is_structured() || (!top && sql::IsQueryNode(node))) return false;
  return std::any_of(node.begin(), node.end(),
                     [](const Json& child) { return BlockAsks(child, false); });
}

/// The first AI call at or below a node, in the order of the tree.
const Json* FirstAiCall(const Json& node) {
  if (IsAiCall(node)) return &node;
  if (!node.is_structured()) return nullptr;
  for (const Json& child : node) {
    if (const Json* call = FirstAiCall(child)) return call;
  }
  return nullptr;
}

void Parameters(const Json& node, std::vector<std::string>& names) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1) names.push_back(path[0]);
  if (!node.is_structured()) return;
  for (const Json& child : node) Parameters(child, names);
}

bool Reads(const Json& node, const std::vector<std::string>& names) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  const auto is_first = [&path](const std::string& name) { return sql::SameWord(path[0], name); };
  if (!path.empty()) return std::any_of(names.begin(), names.end(), is_first);
  if (!node.is_structured()) return false;
  if (sql::ClassOf(node) == "LAMBDA" && node.contains("lhs")) {
    // One inside hides names with its own; a JSON path, which is written alike, has none.
    std::vector<std::string> own;
    Parameters(node["lhs"], own);
    if (Reads(node["expr"], own)) {
      std::vector<std::string> outer = names;
      std::erase_if(outer, [&own](const std::string& name) {
        return std::ranges::any_of(
            own, [&name](const std::string& hides) { return sql::SameWord(hides, name); });
      });
      return Reads(node["expr"], outer);
    }
  }
  return std::any_of(node.begin(), node.end(),
                     [&names](const Json& child) { return Reads(child, names); });
}

/// A parameter has no column that texts could be gathered from, and hides one of its name.
void RefuseInLambda(const Json& node, std::vector<std::string> parameters,
                    const SourceText& source) {
  if (IsAiCall(node) && Reads(node, parameters)) {
    throw source.At(node, ErrorCode::kUnsupported,
                    "an AI call inside a lambda or list comprehension, about its parameter, is not "
                    "supported; use unnest(..) in FROM and list(..) over its rows");
  }
  if (sql::ClassOf(node) == "LAMBDA" && node.contains("lhs")) Parameters(node["lhs"], parameters);
  if (!node.is_structured()) return;
  for (const Json& child : node) RefuseInLambda(child, parameters, source);
}

/// Walks the query nodes of a statement, outer blocks first.
class StatementBinder {
 public:
  explicit StatementBinder(BindState& state) : state_(state) {}

  void BindNode(Json& node, const std::vector<VisibleCte>& outer, BlockPlace place) {
    if (!ContainsAiCall(node)) return;
    if (sql::TypeOf(node) == "RECURSIVE_CTE_NODE") place.on_demand = true;
    std::vector<VisibleCte> ctes = outer;
    AddCtes(node, ctes);
    const bool is_select = sql::TypeOf(node) == "SELECT_NODE";
    if (is_select) NameByText(node, ContainsAiCall, state_.writer);
    if (is_select && !place.on_demand) UseExists(state_, node, ctes);
    if (is_select && BlockAsks(node, true)) {
      BlockBinder(state_, node, {ctes, place.nested, place.on_demand, place.exists}).Bind();
    }
    place.exists = false;
    BindNested(node, ctes, place);
  }

 private:
  void AddCtes(Json& node, std::vector<VisibleCte>& ctes) {
    if (!node.contains("cte_map") || !node["cte_map"].is_object()) return;
    const Json& entries = node["cte_map"]["map"];
    for (const Json& entry : entries) {
      VisibleCte cte;
      cte.name = sql::TextMember(entry, "key");
      cte.entry = std::make_shared<const Json>(entry);
      cte.has_ai = ContainsAiCall(entry) || NamesAiCte(entry, ctes);
      std::erase_if(ctes,
                    [&](const VisibleCte& seen) { return sql::SameWord(seen.name, cte.name); });
      ctes.push_back(std::move(cte));
    }
  }

  void BindNested(Json& node, const std::vector<VisibleCte>& ctes, const BlockPlace& place) {
    const std::string set_operation = "SET_OPERATION_NODE";
    for (const auto& [key, part] : node.items()) {
      std::vector<Nested> nested;
      if (sql::IsQueryNode(part)) {
        nested.push_back({&part});  // binds what is below it itself, and may replace it
      } else {
        FindNested(part, false, nested);
      }
      const bool lateral = key == "from_table" && sql::TypeOf(part) == "JOIN";
      const bool in_from = (key == "from_table" && !lateral) || key == "cte_map" ||
                           sql::TypeOf(node) == set_operation;
      for (const auto& [query, exists] : nested) {
        BindNode(*query, ctes, BlockPlace{ctes, place.nested || !in_from, place.on_demand, exists});
      }
    }
  }

  BindState& state_;
};

/// The engine makes several statements of a PIVOT whose values it must look for, and none of them
/// alone is the query.
Error NamedPivot(const Error& error) {
  const std::string_view message = error.what();
  const bool is_pivot = message.starts_with("Only SELECT statements can be serialized") ||
                        message.find("in pivot list") != message.npos;
  if (!is_pivot) return error;
  return {ErrorCode::kUnsupported,
          "AI calls in or beside a 'PIVOT' whose values are not all written as constants are not "
          "supported yet: keep what it reads or gives in a table first (CREATE TEMP TABLE .. AS)"};
}

/// The engine binds the statement with a stand-in for each call, so that its errors carry places in
/// it. Returns an error that only the arguments of calls bring up: where binding has one of its own
/// about it, that says more.
std::optional<Error> CheckByEngine(const Json& tree, const SourceText& source, Catalog& catalog) {
  std::optional<Error> of_arguments;
  for (const auto arguments : {StandInArguments::kKept, StandInArguments::kDropped}) {
    const auto query = WithStandIns(source.statement().query, tree, arguments);
    if (!query) return std::nullopt;
    try {
      catalog.Columns(query->sql);
      return of_arguments;
    } catch (const Error& error) {
      const Error moved = source.Moved(query->Moved(error));
      if (arguments == StandInArguments::kDropped) throw moved;
      of_arguments = moved;
    }
  }
  return of_arguments;
}

bool HasRow(const Json& node) {
  return sql::AnyNode(node, [](const Json& inner) { return sql::FunctionName(inner) == "row"; });
}

/// For a statement that needs no rows, only their types.
void AskNothing(LogicalPlan& plan) {
  for (Relation& relation : plan.relations) relation.create_sql += " LIMIT 0";
  for (Call& call : plan.calls) call.on_demand = false;
  plan.reduction_sql.clear();
  plan.ai_conjuncts.clear();
  plan.relational_conjuncts.clear();
  plan.computed.clear();
  plan.limits.clear();
}

}  // namespace

LogicalPlan Bind(const BindInput& input, Catalog& catalog) {
  const sql::Statement& statement = input.statement;
  const SourceText source(input.script, statement);
  Json tree;
  try {
    tree = sql::ReadTree(catalog.Parse(statement.query));
  } catch (const Error& error) {
    throw source.Moved(NamedPivot(error));
  }
  BindState state(catalog, source, input.table_prefix);
  NameQueriesByText(tree, state.writer);
  const bool views = input.views != nullptr && input.views->Expand(tree, catalog);
  std::optional<Error> of_arguments;
  if (!views) of_arguments = CheckByEngine(tree, source, catalog);
  if (!views) RefuseImpossibleConstants(tree, source, catalog);
  RefuseStructConditions(tree, source);
  SpellMethodCalls(tree, catalog, state.writer);
  RefuseInLambda(tree, {}, source);
  RefuseHiddenCteReads(tree, catalog, source);
  NameCtesApart(tree);
  DropUnreadCtes(tree, source);
  state.values = StatementValues(tree, catalog, state.writer);
  state.values.ReplaceCalls(tree, state.writer);
  state.volatile_macros = VolatileMacros(tree, catalog);
  NarrowFromQueries(tree, catalog, state.writer, source);
  const std::vector<VisibleCte> none;
  try {
    StatementBinder(state).BindNode(sql::QueryNode(tree), none, BlockPlace{none});
    if (of_arguments && !state.drops_expressions) throw *of_arguments;
  } catch (const Error& error) {
    if (of_arguments && !error.position()) throw *of_arguments;
    throw;
  }
  if (const Json* left = FirstAiCall(tree)) {
    throw source.At(*left, ErrorCode::kUnsupported, "an AI call here is not supported yet");
  }
  LogicalPlan plan = std::move(state.plan);
  std::string query = state.writer.PrintQuery(sql::QueryNode(tree));
  plan.rows_sql = query;
  plan.repeatable = IsRepeatable(tree, state.volatile_macros);
  const bool describe = statement.kind == sql::StatementKind::kDescribe;
  const bool rows = !describe && !statement.no_data;
  const bool on_demand = std::any_of(plan.calls.begin(), plan.calls.end(),
                                     [](const Call& call) { return call.on_demand; });
  if (on_demand && rows) {
    const std::string table = input.table_prefix + "kept";
    plan.on_demand_sql = fmt::format("CREATE OR REPLACE TEMP TABLE {} AS {}", table, query);
    if (HasRow(tree)) plan.kept_table = table;
    plan.cleanup_sql.push_back(fmt::format("DROP TABLE IF EXISTS {}", table));
    query = fmt::format("SELECT * FROM {}", table);
  }
  plan.final_sql = fmt::format("{}{}{}", statement.before, query, statement.after);
  if (!rows) AskNothing(plan);
  if (describe) plan.final_sql = fmt::format("DESCRIBE {}", plan.final_sql);
  return plan;
}

void KeepUnnamedStructs(LogicalPlan& plan, const columnar::Schema& columns) {
  std::string kept;
  std::string read;
  for (const columnar::Field& field : columns) {
    if (!HasUnnamedStruct(field.type)) continue;
    const std::string name = sql::QuoteIdentifier(field.name);
    const std::string_view comma = kept.empty() ? "" : ", ";
    kept += fmt::format("{}CAST({} AS {}) AS {}", comma, name, NamedType(field.type), name);
    read += fmt::format("{}{} AS {}", comma, WithoutNames(name, field.type), name);
  }
  if (kept.empty()) return;
  const std::string table = plan.kept_table + "_named";
  plan.on_demand_sql = fmt::format(
      "CREATE OR REPLACE TEMP TABLE {0} AS SELECT * REPLACE ({1}) FROM ({2}\n); "
      "CREATE OR REPLACE TEMP VIEW {3} AS SELECT * REPLACE ({4}) FROM {0}",
      table, kept, plan.rows_sql, plan.kept_table, read);
  for (std::string& sql : plan.cleanup_sql) {
    if (sql == fmt::format("DROP TABLE IF EXISTS {}", plan.kept_table)) {
      sql = fmt::format("DROP VIEW IF EXISTS {}; DROP TABLE IF EXISTS {}", plan.kept_table, table);
    }
  }
}

}  // namespace quail::plan
