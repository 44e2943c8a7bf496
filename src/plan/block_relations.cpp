#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>

#include "columnar/tokens_type.h"
#include "fmt/format.h"
#include "plan/block_binder.h"
#include "plan/unnamed_structs.h"
#include "sql/lexer.h"

/// BlockBinder: FROM items become relations, and the tree reads their tables.
namespace quail::plan {

using sql::Json;

namespace {

/// Column names that a block's tree mentions, in lower case.
struct Mentions {
  bool everything = false;
  bool by_pattern = false;          ///< COLUMNS('..'), COLUMNS(c -> ..)
  bool by_number = false;           ///< #1
  std::set<std::string> all_of;     ///< aliases under a star
  std::set<std::string> bare;       ///< column, or the first part of a longer path
  std::set<std::string> alone;      ///< a path of one part
  std::set<std::string> qualified;  ///< alias.column
};

/// Whether a column's name is one that relations' tables have beside the user's.
bool IsAddedName(std::string_view name) {
  const std::string lower = sql::LowerCase(name);
  constexpr std::string_view kDigits = "0123456789_";
  return lower == "quail_row" || ((lower.starts_with("quail_t") || lower.starts_with("quail_p")) &&
                                  lower.find_first_not_of(kDigits, 7) == std::string::npos);
}

void Collect(const Json& node, bool nested, Mentions& mentions) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (!path.empty()) mentions.bare.insert(sql::LowerCase(path[0]));
  if (path.size() == 1) mentions.alone.insert(sql::LowerCase(path[0]));
  if (sql::ClassOf(node) == "POSITIONAL_REFERENCE") mentions.by_number = true;
  if (path.size() > 1) {
    mentions.qualified.insert(sql::LowerCase(path[0]) + "." + sql::LowerCase(path[1]));
  }
  if (sql::ClassOf(node) == "STAR" && !nested) {
    const std::string_view alias = sql::TextMember(node, "relation_name");
    if (alias.empty()) mentions.everything = true;
    if (!sql::IsAbsent(node, "expr")) mentions.by_pattern = true;
    mentions.all_of.insert(sql::LowerCase(alias));
  }
  if (node.is_object() && node.contains("using_columns")) {
    for (const Json& name : node["using_columns"]) {
      if (name.is_string()) mentions.bare.insert(sql::LowerCase(name.get<std::string>()));
    }
  }
  if (!node.is_structured()) return;
  const bool inside = nested || (sql::IsQueryNode(node));
  for (const Json& child : node) Collect(child, inside, mentions);
}

Mentions MentionsOf(const Json& select) {
  Mentions mentions;
  for (const Json& part : select) {
    if (part.is_structured()) Collect(part, false, mentions);
  }
  return mentions;
}

}  // namespace

/// Columns that `*` does not show, such as a table's rowid: a relation's table has them where the
/// block mentions them, since it has others of its own. False where only the engine can tell whose
/// they are.
bool BlockBinder::DescribeVirtualColumns() {
  const Mentions mentions = MentionsOf(select_);
  for (const std::string name : {"rowid", "filename", "file_index", "file_row_number"}) {
    const bool shown =
        std::any_of(from_.items.begin(), from_.items.end(),
                    [&name](const FromItem& item) { return FindColumn(item.columns, name) >= 0; });
    const bool bare = mentions.alone.contains(name) && !shown;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const std::string qualified =
          fmt::format("{}.{}", sql::LowerCase(from_.items[i].alias), name);
      const bool mentioned = bare || mentions.qualified.contains(qualified);
      if (!mentioned || !HasVirtualColumn(i, name)) continue;
      if (shown || (bare && items_.size() > 1)) return false;
      from_.items[i].columns.push_back({name, "VARCHAR"});
      from_.items[i].virtual_columns.push_back(name);
    }
  }
  return true;
}

bool BlockBinder::HasVirtualColumn(std::size_t item, const std::string& column) {
  const std::string_view type = sql::TypeOf(*from_.items[item].node);
  if (type != "BASE_TABLE" && type != "TABLE_FUNCTION") return false;
  if (FindColumn(from_.items[item].columns, column) >= 0) return false;
  return Selects(item, writer_.ParseExpression(ColumnSql(from_.items[item].alias, column)));
}

/// Whether the engine finds what a reference names in an item. What it does not find is another
/// item's, or nobody's: the engine says so where it stands.
bool BlockBinder::Selects(std::size_t item, const Json& reference) {
  return state_.catalog.Binds(
      WithVisibleCtes(writer_.MakeSelect({reference}, *from_.items[item].node, {})));
}

/// Whether an expression over one item is a list, as far as that is told before it is bound.
bool BlockBinder::IsList(const Json& expression) {
  const NameScope::Column column = scope_.ColumnOf(expression);
  if (column.item >= 0 && column.column >= 0) {
    const columnar::Schema& columns = from_.items[static_cast<std::size_t>(column.item)].columns;
    return columns[static_cast<std::size_t>(column.column)].type.ends_with(']');
  }
  const ItemSet items = scope_.SourcesOf(expression);
  if (std::popcount(items) != 1) return false;
  Json reversed = writer_.ParseExpression("list_reverse(t)");
  *sql::ArgumentsOf(reversed)[0].value = expression;
  return Selects(FirstOf(items), reversed);
}

/// The relation's table in FROM.
Json BlockBinder::ReadOf(std::size_t item) const {
  const std::string& alias = from_.items[item].alias;
  std::string restored;
  for (const columnar::Field& field : from_.items[item].columns) {
    if (!HasUnnamedStruct(field.type)) continue;
    const std::string name = sql::QuoteIdentifier(field.name);
    restored += fmt::format("{}{} AS {}", restored.empty() ? "" : ", ",
                            WithoutNames(name, field.type), name);
  }
  if (restored.empty()) return writer_.ParseTable(items_[item].table, alias);
  return writer_.ParseFrom(fmt::format("(SELECT * REPLACE ({}) FROM {}) AS {}", restored,
                                       sql::QuoteIdentifier(items_[item].table),
                                       sql::QuoteIdentifier(alias)));
}

void BlockBinder::ReplaceItems() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Json table = ReadOf(i);
    std::swap(*from_.items[i].node, table);
    items_[i].source = std::move(table);
  }
}

/// `*` must not show the columns that we add.
void BlockBinder::HideColumns(Json& node) {
  if (sql::ClassOf(node) == "STAR") {
    const std::string_view alias = sql::TextMember(node, "relation_name");
    Json& excluded = node["exclude_list"];
    bool any = false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const FromItem& item = from_.items[i];
      if (alias.empty() ? !item.visible : !sql::SameWord(item.alias, alias)) continue;
      for (const IdColumn& column : items_[i].id_columns) excluded.push_back(column.name);
      for (const std::string& column : item.virtual_columns) {
        const bool once = std::find(excluded.begin(), excluded.end(), column) == excluded.end();
        if (once) excluded.push_back(column);
      }
      any = true;
    }
    if (any) excluded.push_back("quail_row");
    if (!alias.empty()) return;
    for (const PairTerm& pairs : pair_terms_) {
      for (const std::string& column : pairs.table.columns) excluded.push_back(column);
    }
    return;
  }
  // ORDER BY ALL is a star too: over the select list, which has none of ours.
  const bool is_order = node.is_object() && node.contains("null_order");
  if (is_order && sql::ClassOf(node["expression"]) == "STAR") return;
  sql::ForEachChild(node, [this](Json& child) {
    if (!sql::IsQueryNode(child)) HideColumns(child);
  });
}

/// Whether the block could show the columns that we add in a way that nothing hides: whole rows,
/// columns by pattern or by number, a struct's members; or has columns named as ours are.
bool BlockBinder::ShowsAddedColumns() const {
  const Mentions mentions = MentionsOf(select_);
  if (mentions.by_pattern || mentions.by_number) return true;
  const auto& items = from_.items;
  const auto has_column = [&](const std::string& name) {
    return std::any_of(items.begin(), items.end(),
                       [&](const FromItem& item) { return FindColumn(item.columns, name) >= 0; });
  };
  const auto is_alias = [&](const std::string& name) {
    return std::any_of(items.begin(), items.end(),
                       [&](const FromItem& item) { return sql::SameWord(item.alias, name); });
  };
  for (const std::string& starred : mentions.all_of) {
    if (!starred.empty() && !is_alias(starred)) return true;
  }
  return std::any_of(items.begin(), items.end(), [&](const FromItem& item) {
    const std::string alias = sql::LowerCase(item.alias);
    if (mentions.alone.contains(alias) && !has_column(alias)) return true;
    return std::any_of(item.columns.begin(), item.columns.end(),
                       [](const columnar::Field& field) { return IsAddedName(field.name); });
  });
}

std::vector<std::string> BlockBinder::NeededColumns(std::size_t index) {
  const Mentions mentions = MentionsOf(select_);
  const FromItem& item = from_.items[index];
  const std::string alias = sql::LowerCase(item.alias);
  const bool all = mentions.everything || mentions.all_of.contains(alias);
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (const columnar::Field& field : item.columns) {
    const std::string name = sql::LowerCase(field.name);
    const bool is_virtual = std::ranges::count(item.virtual_columns, name) > 0;
    const bool mentioned = all || is_virtual || mentions.bare.contains(name) ||
                           mentions.qualified.contains(fmt::format("{}.{}", alias, name));
    if (mentioned && seen.insert(name).second) columns.push_back(field.name);
  }
  return columns;
}

std::string BlockBinder::CreateSql(std::size_t index,
                                   const std::vector<std::string>& columns) const {
  const FromItem& item = from_.items[index];
  std::string list = "row_number() OVER () - 1 AS quail_row";
  for (const std::string& column : columns) {
    const std::string& type =
        item.columns[static_cast<std::size_t>(FindColumn(item.columns, column))].type;
    const std::string value = ColumnSql(item.alias, column);
    list += HasUnnamedStruct(type) ? fmt::format(", CAST({} AS {}) AS {}", value, NamedType(type),
                                                 sql::QuoteIdentifier(column))
                                   : fmt::format(", {}", value);
  }
  for (const IdColumn& column : items_[index].id_columns) {
    list += column.tokens ? fmt::format(", quail_token_list_id(struct_extract({}, '{}')) AS {}",
                                        column.argument_sql, columnar::kTokensMember, column.name)
                          : fmt::format(", quail_text_id(CAST({} AS VARCHAR)) AS {}",
                                        column.argument_sql, column.name);
  }
  std::vector<Json> shown = {writer_.star()};
  for (const std::string& column : item.virtual_columns) {
    shown.push_back(writer_.ParseExpression(ColumnSql(item.alias, column)));
  }
  const std::string inner = WithVisibleCtes(
      writer_.MakeSelect(std::move(shown), items_[index].source, items_[index].local_terms));
  return fmt::format("CREATE TEMP TABLE {} AS SELECT {} FROM ({}) AS {}",
                     sql::QuoteIdentifier(items_[index].table), list, inner,
                     sql::QuoteIdentifier(item.alias));
}

void BlockBinder::CreateRelations() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Relation& relation = state_.plan.relations[first_relation_ + i];
    relation.create_sql = CreateSql(i, NeededColumns(i));
    for (const IdColumn& column : items_[i].id_columns) relation.id_columns.push_back(column.name);
    state_.plan.cleanup_sql.push_back(
        fmt::format("DROP TABLE IF EXISTS {}", sql::QuoteIdentifier(items_[i].table)));
  }
}

/// Rows of a core relation with texts that no combination of the other core relations' rows can
/// complete are deleted: no question is asked about them.
void BlockBinder::AddReductions() {
  const auto& conjuncts = state_.plan.relational_conjuncts;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].id_columns.empty() || !from_.items[i].core) continue;
    ItemSet linked = SetOf(i);
    std::vector<std::string> terms;
    for (bool grew = true; grew;) {
      grew = false;
      terms.clear();
      for (std::size_t c = first_relational_; c < conjuncts.size(); ++c) {
        ItemSet items = 0;
        for (const RelationId id : conjuncts[c].relations)
          items |= SetOf(id.value() - first_relation_);
        if ((items & linked) == 0) continue;
        grew = grew || (items & ~linked) != 0;
        linked |= items;
        terms.push_back(fmt::format("({})", conjuncts[c].sql));
      }
    }
    std::vector<std::string> reasons;
    std::vector<std::string> tables;
    for (std::size_t k = 0; k < items_.size(); ++k) {
      const std::string table = sql::QuoteIdentifier(items_[k].table);
      if (Has(linked, k)) {
        tables.push_back(
            fmt::format("{} AS {}", table, sql::QuoteIdentifier(from_.items[k].alias)));
      } else if (from_.items[k].core) {
        reasons.push_back(fmt::format("NOT EXISTS (SELECT 1 FROM {})", table));
      }
    }
    if (!terms.empty()) {
      reasons.push_back(fmt::format("quail_row NOT IN (SELECT {} FROM {} WHERE {})",
                                    ColumnSql(from_.items[i].alias, "quail_row"),
                                    fmt::join(tables, ", "), fmt::join(terms, " AND ")));
    }
    if (reasons.empty()) continue;
    state_.plan.reduction_sql.push_back(fmt::format("DELETE FROM {} WHERE {}",
                                                    sql::QuoteIdentifier(items_[i].table),
                                                    fmt::join(reasons, " OR ")));
  }
}

void BlockBinder::DropTruths(Json& holder, const char* key) {
  Json& condition = holder[key];
  if (condition.is_null()) return;
  if (condition == writer_.truth()) {
    const bool join = sql::TypeOf(holder) == "JOIN";
    if (!join) condition = nullptr;
    return;
  }
  if (sql::TypeOf(condition) != "CONJUNCTION_AND") return;
  std::vector<Json> kept;
  for (Json& term : condition["children"]) {
    if (term != writer_.truth()) kept.push_back(std::move(term));
  }
  if (kept.empty()) kept.push_back(writer_.truth());
  condition = writer_.MakeAnd(std::move(kept));
  if (condition == writer_.truth()) DropTruths(holder, key);
}

}  // namespace quail::plan
