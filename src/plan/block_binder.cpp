#include "plan/block_binder.h"

#include <algorithm>
#include <bit>

#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/result_names.h"
#include "sql/lexer.h"

namespace quail::plan {

using sql::Json;

namespace {

/// Of names that stand for expressions with names: each doubling doubles them.
constexpr std::size_t kMostExpansions = 4096;

/// Whether `node` has AI calls outside of (or only inside of) nested queries.
bool AsksItself(const Json& node) {
  if (IsAiCall(node)) return true;
  if (sql::IsQueryNode(node) || !node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(), [](const Json& child) { return AsksItself(child); });
}
bool AsksInside(const Json& node) {
  if (sql::IsQueryNode(node)) return ContainsAiCall(node);
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(), [](const Json& child) { return AsksInside(child); });
}

/// Whether a query nested in `node` has a FROM item of that name.
bool NamesTable(const Json& node, const std::string& name, bool nested) {
  const bool item = nested && !sql::IsExpression(node) && node.is_object() &&
                    node.contains("alias") && sql::TypeOf(node) != "JOIN";
  if (item) {
    const std::string_view alias = sql::AliasOf(node);
    if (sql::SameWord(alias.empty() ? sql::TextMember(node, "table_name") : alias, name)) {
      return true;
    }
  }
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(), [&](const Json& child) {
    return NamesTable(child, name, nested || sql::IsQueryNode(child));
  });
}

}  // namespace

BlockBinder::BlockBinder(BindState& state, Json& select, const BlockPlace& place)
    : state_(state),
      source_(state.source),
      writer_(state.writer),
      select_(select),
      place_(place),
      from_(ReadFrom(select["from_table"], state.source)),
      scope_(from_, state.source, state.volatile_macros),
      items_(from_.items.size()),
      first_relation_(state.plan.relations.size()),
      first_conjunct_(state.plan.ai_conjuncts.size()),
      first_computed_(state.plan.computed.size()),
      first_relational_(state.plan.relational_conjuncts.size()) {}

void BlockBinder::Bind() {
  NameUnnamedItems();
  const bool described = !place_.on_demand && !ReadsAiRows() && DescribeItems();
  if (described) ReplaceValueNames();
  on_demand_ = !described || SharesAlias() || !ShortenSchemaNames(select_, false) ||
               !DescribeVirtualColumns() || ShowsAddedColumns();
  if (on_demand_) return BindOnDemand();
  if (StopsEarly()) return BindEarlyStop();
  AddItems();
  ReplaceNaturalJoins();
  for (Json* expression : sql::ExpressionsOf(select_)) {
    const bool where = expression == &select_["where_clause"];
    ExpandAliases(*expression, where ? AliasPlace::kWhere : AliasPlace::kElsewhere,
                  select_["select_list"].size());
  }
  NameResultColumns();
  CollectTerms();
  PushLocalTerms();
  BindAllCalls();
  ReplaceItems();
  PlanCoreTerms();
  HideColumns(select_);
  PlanJoinTerms();
  PlanComputed();
  CreateRelations();
  AddReductions();
  SetLimit();
  if (limits_rows_) select_["modifiers"] = LimitModifiers(true);
  for (const FromJoin& join : from_.joins) DropTruths(*join.node, "condition");
  DropTruths(select_, "where_clause");
  ReadOnDemandLazily();
  ReadPairTables();
}

// --- names and shape ---

/// Rows that AI calls chose or computed are known only while the statement runs.
bool BlockBinder::ReadsAiRows() const {
  return std::any_of(from_.items.begin(), from_.items.end(), [this](const FromItem& item) {
    return ContainsAiCall(*item.node) || NamesAiCte(*item.node, place_.ctes);
  });
}

void BlockBinder::NameUnnamedItems() {
  std::size_t unnamed = 0;
  for (FromItem& item : from_.items) {
    if (!item.alias.empty()) continue;
    ++unnamed;
    item.alias = unnamed == 1 ? "unnamed_subquery" : fmt::format("unnamed_subquery{}", unnamed);
  }
}

std::string BlockBinder::WithVisibleCtes(Json node) const {
  for (const VisibleCte& cte : place_.ctes) {
    if (!cte.has_ai) node["cte_map"]["map"].push_back(*cte.entry);
  }
  return writer_.PrintQuery(node);
}

/// nullopt: it reads what stands before it in FROM, or an enclosing query, as a WITH may, too.
std::optional<columnar::Schema> BlockBinder::ColumnsOf(std::size_t item) {
  const Json& node = *from_.items[item].node;
  try {
    return state_.catalog.Columns(WithVisibleCtes(writer_.MakeSelect({writer_.star()}, node, {})));
  } catch (const Error& error) {
    const bool is_table = sql::TypeOf(node) == "BASE_TABLE";
    const bool can_correlate =
        is_table ? place_.nested && !place_.ctes.empty() : item > 0 || place_.nested;
    if (!can_correlate) throw source_.At(node, error.code(), error.what());
    return std::nullopt;
  }
}

bool BlockBinder::DescribeItems() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    auto columns = ColumnsOf(i);
    if (!columns) return false;
    from_.items[i].columns = std::move(*columns);
  }
  return true;
}

void BlockBinder::AddItems() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].relation = RelationId(static_cast<std::uint32_t>(first_relation_ + i));
    items_[i].table = state_.NewTable();
    state_.plan.relations.push_back(
        {items_[i].relation, from_.items[i].alias, items_[i].table, "", {}});
  }
}

/// `FROM t, s.t`: only the engine tells them apart.
bool BlockBinder::SharesAlias() const {
  std::set<std::string> seen;
  return !std::all_of(from_.items.begin(), from_.items.end(), [&seen](const FromItem& item) {
    return seen.insert(sql::LowerCase(item.alias)).second;
  });
}

/// How many parts of a column's name stand before the table's name and say that it is this item's;
/// 0: it is not, or not by such parts.
std::size_t BlockBinder::QualifiersOf(const std::vector<std::string>& path, std::size_t index) {
  const FromItem& item = from_.items[index];
  if (item.renamed || item.table.empty()) return 0;
  for (const std::size_t count : {1U, 2U}) {
    if (path.size() < count + 2 || !sql::SameWord(path[count], item.table)) continue;
    if (FindColumn(item.columns, path[count + 1]) < 0 && path[count + 1] != "rowid") continue;
    const bool written = count == 1 && sql::SameWord(path[0], item.schema);
    std::string column;
    for (std::size_t i = 0; i <= count + 1; ++i) {
      column += fmt::format("{}{}", i == 0 ? "" : ".", sql::QuoteIdentifier(path[i]));
    }
    if (written || Selects(index, writer_.ParseExpression(column))) return count;
  }
  return 0;
}

/// schema.table.column as table.column, the name that the relation's table answers to. False where
/// in a nested query that would be a table of its own.
bool BlockBinder::ShortenSchemaNames(Json& node, bool nested) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  const bool is_struct = path.size() > 2 && scope_.IsColumn(path[0], path[1]);
  for (std::size_t i = 0; path.size() > 2 && !is_struct && i < items_.size(); ++i) {
    const std::size_t count = QualifiersOf(path, i);
    if (count == 0) continue;
    if (nested && NamesTable(select_, from_.items[i].alias, false)) return false;
    for (std::size_t part = 0; part < count; ++part) node["column_names"].erase(0);
    return true;
  }
  bool all = true;
  sql::ForEachChild(node, [&](Json& child) {
    all = ShortenSchemaNames(child, nested || sql::IsQueryNode(child)) && all;
  });
  return all;
}

/// Names that are no columns and stand for functions become their values; parameters of lambdas
/// hide them.
void BlockBinder::ReplaceValueNames(Json& node, const std::set<std::string>& names) {
  if (sql::IsQueryNode(node) || sql::ClassOf(node) == "LAMBDA") return;
  if (const Json* value = state_.values.ValueOf(node)) {
    if (names.contains(sql::LowerCase(sql::ColumnPath(node).at(0)))) return;
    const std::string alias(sql::AliasOf(node));
    node = Json(*value);
    node["alias"] = alias;
    return;
  }
  sql::ForEachChild(node, [&](Json& child) { ReplaceValueNames(child, names); });
}

void BlockBinder::ReplaceValueNames() {
  std::set<std::string> names;
  for (const FromItem& item : from_.items) {
    for (const columnar::Field& field : item.columns) names.insert(sql::LowerCase(field.name));
  }
  for (const Json& result : select_["select_list"]) {
    names.insert(sql::LowerCase(sql::AliasOf(result)));
  }
  const std::function<bool(const Json&)> reads_value = [&](const Json& node) {
    if (state_.values.ValueOf(node) != nullptr) return true;
    if (sql::IsQueryNode(node) || !node.is_structured()) return false;
    return std::any_of(node.begin(), node.end(), reads_value);
  };
  NameByText(select_, reads_value, writer_);
  for (Json* expression : sql::ExpressionsOf(select_)) ReplaceValueNames(*expression, names);
  for (const FromJoin& join : from_.joins) ReplaceValueNames((*join.node)["condition"], names);
}

/// NATURAL would pair our own columns: it becomes USING over the columns that both sides have.
void BlockBinder::ReplaceNaturalJoins() {
  for (const FromJoin& join : from_.joins) {
    if (sql::TextMember(*join.node, "ref_type") != "NATURAL") continue;
    Json common = Json::array();
    for (std::size_t left = 0; left < items_.size(); ++left) {
      if (!Has(join.left, left)) continue;
      const columnar::Schema& columns = from_.items[left].columns;
      for (std::size_t c = 0; c < from_.items[left].shown_columns(); ++c) {
        const columnar::Field& field = columns[c];
        for (std::size_t right = 0; right < items_.size(); ++right) {
          const bool both =
              Has(join.right, right) && FindColumn(from_.items[right].columns, field.name) >= 0;
          if (both && std::find(common.begin(), common.end(), field.name) == common.end()) {
            common.push_back(field.name);
          }
        }
      }
    }
    if (common.empty()) {
      throw source_.At(*join.node, ErrorCode::kBind,
                       "NATURAL JOIN of tables without a common column");
    }
    (*join.node)["ref_type"] = "REGULAR";
    (*join.node)["using_columns"] = common;
  }
}

std::optional<std::size_t> BlockBinder::ItemNamed(const std::string& name) const {
  const Json& list = select_["select_list"];
  for (std::size_t i = list.size(); i > 0; --i) {
    if (sql::SameWord(sql::AliasOf(list[i - 1]), name)) return i - 1;
  }
  return std::nullopt;
}

std::optional<std::size_t> BlockBinder::AliasedItem(const std::string& name,
                                                    std::size_t before) const {
  for (const FromItem& item : from_.items) {
    if (FindColumn(item.columns, name) >= 0) return std::nullopt;
  }
  const auto item = ItemNamed(name);
  return item && *item < before ? item : std::nullopt;
}

/// Aliases of the select list inside arguments of AI calls, and those of AI calls in WHERE, become
/// what they stand for, in which an alias is one of the items in front. `before`: how many items
/// are looked at.
void BlockBinder::ExpandAliases(Json& node, AliasPlace place, std::size_t before) {
  if (sql::IsQueryNode(node)) return;
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1) {
    const auto item = AliasedItem(path[0], before);
    if (!item || place == AliasPlace::kElsewhere) return;
    if (++expansions_ > kMostExpansions) {
      throw source_.At(node, ErrorCode::kUnsupported,
                       "names of the select list that stand for others make too large an AI call: "
                       "not supported, compute them in a subquery in FROM");
    }
    Json meant = select_["select_list"][*item];
    ExpandAliases(meant, AliasPlace::kCall, *item);
    if (place == AliasPlace::kWhere && !ContainsAiCall(meant)) return;
    meant["alias"] = std::string(sql::AliasOf(node));
    node = std::move(meant);
    return;
  }
  const AliasPlace below = IsAiCall(node) ? AliasPlace::kCall : place;
  sql::ForEachChild(node, [&](Json& child) { ExpandAliases(child, below, before); });
}

/// Unaliased results that stand for a call have its canonical name; larger ones the name that their
/// text gives.
void BlockBinder::NameResultColumns() {
  std::map<std::string, int> used;
  for (Json& expression : select_["select_list"]) {
    if (!sql::AliasOf(expression).empty() || !AsksItself(expression)) continue;
    if (HasNamesOfColumns(expression)) continue;
    if (!IsAiCall(expression)) {
      expression["alias"] = writer_.PrintExpression(expression);
      continue;
    }
    expression["alias"] = CallName(expression, used);
  }
}

// --- AND terms ---

void BlockBinder::AddTerms(Json& node, bool core) {
  if (!node.is_object()) return;
  if (sql::TypeOf(node) == "CONJUNCTION_AND") {
    for (Json& child : node["children"]) AddTerms(child, core);
    return;
  }
  Term term;
  term.node = &node;
  term.reads = scope_.ReadsOf(node);
  term.core = core;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (Has(term.reads.items, i) && !from_.items[i].core) term.core = false;
  }
  term.asks = AsksItself(node);
  term.deep = AsksInside(node) || (term.reads.has_subquery && NamesAiCte(node, place_.ctes));
  terms_.push_back(term);
}

/// In AND terms a column that USING merged is the side's whose it is: a domain has its own FROM,
/// where the bare name would be two columns.
void BlockBinder::QualifyUsingColumns(Json& node) const {
  if (sql::IsQueryNode(node)) return;
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1 && MergesColumn(path[0])) {
    const ItemSet sources = scope_.SourcesOf(path[0]);
    if (std::popcount(sources) != 1) return;
    const std::size_t item = FirstOf(sources);
    node["column_names"] = {from_.items[item].alias, path[0]};
    return;
  }
  sql::ForEachChild(node, [this](Json& child) { QualifyUsingColumns(child); });
}

bool BlockBinder::MergesColumn(const std::string& column) const {
  return std::any_of(from_.joins.begin(), from_.joins.end(), [&](const FromJoin& join) {
    const Json& names = (*join.node)["using_columns"];
    return join.core && std::any_of(names.begin(), names.end(), [&](const Json& name) {
             return sql::SameWord(name.get<std::string>(), column);
           });
  });
}

void BlockBinder::CollectTerms() {
  for (const FromJoin& join : from_.joins) {
    scope_.SeeJoin(join);
    if (join.core) QualifyUsingColumns((*join.node)["condition"]);
  }
  scope_.SeeResult();
  QualifyUsingColumns(select_["where_clause"]);
  for (const FromJoin& join : from_.joins) {
    if (join.core) AddTerms((*join.node)["condition"], true);
  }
  AddTerms(select_["where_clause"], true);
}

bool BlockBinder::IsUsable(const Term& term) const {
  return term.core && !term.asks && !term.deep && !term.reads.outside &&
         !(term.reads.has_subquery && place_.nested);
}

/// Terms about one item move into its relation; terms about none, if they are the same at any time,
/// go into all.
void BlockBinder::PushLocalTerms() {
  for (Term& term : terms_) {
    if (!IsUsable(term) || std::popcount(term.reads.items) > 1) continue;
    if (term.reads.items == 0) {
      if (term.reads.is_volatile) continue;
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (from_.items[i].core) items_[i].local_terms.push_back(*term.node);
      }
      continue;
    }
    const std::size_t item = FirstOf(term.reads.items);
    items_[item].local_terms.push_back(*term.node);
    *term.node = writer_.truth();
    term.pushed = true;
  }
}

std::vector<RelationId> BlockBinder::RelationsOf(ItemSet items) const {
  std::vector<RelationId> relations;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (Has(items, i)) relations.push_back(items_[i].relation);
  }
  return relations;
}

void BlockBinder::AddRelationalConjunct(const std::string& sql, ItemSet items) {
  state_.plan.relational_conjuncts.push_back({sql, RelationsOf(items)});
}

/// What USING of an inner join equates, where each side has the column from one item whose rows the
/// result has.
void BlockBinder::AddUsingTerms() {
  for (const FromJoin& join : from_.joins) {
    if (!join.core) continue;
    for (const Json& name : (*join.node)["using_columns"]) {
      const std::string column = name.get<std::string>();
      const ItemSet left = scope_.SourcesIn(column, join.seen & join.left);
      const ItemSet right = scope_.SourcesIn(column, join.seen & join.right);
      if (!IsOneCoreItem(left) || !IsOneCoreItem(right)) continue;
      const auto side = [&](ItemSet item) {
        return ColumnSql(from_.items[FirstOf(item)].alias, column);
      };
      AddRelationalConjunct(fmt::format("{} = {}", side(left), side(right)), left | right);
    }
  }
}

bool BlockBinder::IsOneCoreItem(ItemSet items) const {
  return std::popcount(items) == 1 && from_.items[FirstOf(items)].core;
}

}  // namespace quail::plan
