#include "plan/name_scope.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "base/utf8.h"
#include "fmt/format.h"
#include "plan/volatile_functions.h"
#include "sql/lexer.h"

namespace quail::plan {

namespace {

using sql::Json;

/// DuckDB's.
constexpr std::array<std::string_view, 79> kAggregates = {"any_value",
                                                          "approx_count_distinct",
                                                          "approx_quantile",
                                                          "approx_top_k",
                                                          "arbitrary",
                                                          "arg_max",
                                                          "arg_max_null",
                                                          "arg_max_nulls_last",
                                                          "arg_min",
                                                          "arg_min_null",
                                                          "arg_min_nulls_last",
                                                          "argmax",
                                                          "argmin",
                                                          "array_agg",
                                                          "avg",
                                                          "bit_and",
                                                          "bit_or",
                                                          "bit_xor",
                                                          "bitstring_agg",
                                                          "bool_and",
                                                          "bool_or",
                                                          "corr",
                                                          "count",
                                                          "count_if",
                                                          "count_star",
                                                          "countif",
                                                          "covar_pop",
                                                          "covar_samp",
                                                          "entropy",
                                                          "favg",
                                                          "first",
                                                          "fsum",
                                                          "geomean",
                                                          "geometric_mean",
                                                          "group_concat",
                                                          "histogram",
                                                          "histogram_exact",
                                                          "kahan_sum",
                                                          "kurtosis",
                                                          "kurtosis_pop",
                                                          "last",
                                                          "list",
                                                          "listagg",
                                                          "mad",
                                                          "max",
                                                          "max_by",
                                                          "mean",
                                                          "median",
                                                          "min",
                                                          "min_by",
                                                          "mode",
                                                          "product",
                                                          "quantile",
                                                          "quantile_cont",
                                                          "quantile_disc",
                                                          "regr_avgx",
                                                          "regr_avgy",
                                                          "regr_count",
                                                          "regr_intercept",
                                                          "regr_r2",
                                                          "regr_slope",
                                                          "regr_sxx",
                                                          "regr_sxy",
                                                          "regr_syy",
                                                          "reservoir_quantile",
                                                          "sem",
                                                          "skewness",
                                                          "stddev",
                                                          "stddev_pop",
                                                          "stddev_samp",
                                                          "string_agg",
                                                          "sum",
                                                          "sum_no_overflow",
                                                          "sumkahan",
                                                          "var_pop",
                                                          "var_samp",
                                                          "variance",
                                                          "wavg",
                                                          "weighted_avg"};

template <std::size_t N>
bool OneOf(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsMergedBy(const FromJoin& join, const std::string& column) {
  if (!join.node->contains("using_columns")) return false;
  const Json& names = (*join.node)["using_columns"];
  return std::any_of(names.begin(), names.end(), [&column](const Json& name) {
    return name.is_string() && sql::SameWord(name.get<std::string>(), column);
  });
}

}  // namespace

bool IsAggregate(std::string_view function) { return OneOf(kAggregates, function); }

ItemSet NameScope::ItemsWith(const std::string& column) const {
  ItemSet found = 0;
  for (std::size_t i = 0; i < from_.items.size(); ++i) {
    if (FindColumn(from_.items[i].columns, column) >= 0) found |= SetOf(i);
  }
  return found;
}

bool NameScope::IsVolatile(const std::string& function) const {
  return IsVolatileFunction(function) || volatile_macros_.contains(function);
}

void NameScope::SeeResult() {
  seen_ = 0;
  for (std::size_t i = 0; i < from_.items.size(); ++i) {
    if (from_.items[i].visible) seen_ |= SetOf(i);
  }
}

/// In an ON those outside of its join, before a comma, have the names that its own leave.
ItemSet NameScope::SeenItemsWith(const std::string& column) const {
  const ItemSet all = ItemsWith(column);
  if ((all & seen_) != 0) return all & seen_;
  ItemSet around = 0;
  for (std::size_t i = 0; i < from_.items.size(); ++i) {
    if (Has(all, i) && from_.items[i].visible) around |= SetOf(i);
  }
  return around;
}

ItemSet NameScope::SourcesOf(const std::string& column) const {
  return SourcesAmong(column, SeenItemsWith(column));
}

ItemSet NameScope::SourcesOf(const Json& expression) const {
  const std::vector<std::string> path = sql::ColumnPath(expression);
  if (!path.empty()) {
    const int item = path.size() > 1 ? ItemNamed(path[0]) : -1;
    return item >= 0 ? SetOf(static_cast<std::size_t>(item)) : SourcesOf(path[0]);
  }
  ItemSet sources = 0;
  if (!expression.is_structured()) return sources;
  for (const Json& child : expression) sources |= SourcesOf(child);
  return sources;
}

ItemSet NameScope::SourcesIn(const std::string& column, ItemSet side) const {
  return SourcesAmong(column, ItemsWith(column) & side);
}

/// As the engine has it, a name that USING merged is the merged column's, whatever other items have
/// a column of that name.
ItemSet NameScope::SourcesAmong(const std::string& column, ItemSet items) const {
  const std::vector<MergedColumn> merged = MergedIn(column, items);
  return merged.size() == 1 ? merged[0].sources : items;
}

std::vector<NameScope::MergedColumn> NameScope::MergedIn(const std::string& column,
                                                         ItemSet items) const {
  std::vector<MergedColumn> merged;
  const auto take = [&merged](ItemSet side) {
    const auto found = std::ranges::find_if(
        merged, [side](const MergedColumn& known) { return (known.items & side) != 0; });
    if (found == merged.end()) return MergedColumn{side, side};
    const MergedColumn taken = *found;
    merged.erase(found);
    return taken;
  };
  for (const FromJoin& join : from_.joins) {
    const std::string_view type = sql::TextMember(*join.node, "join_type");
    const bool hides_right = type == "SEMI" || type == "ANTI";
    const bool both = (items & join.left) != 0 && (hides_right || (items & join.right) != 0);
    if (!both || !IsMergedBy(join, column)) continue;
    const MergedColumn left = take(items & join.left);
    const MergedColumn right = hides_right ? MergedColumn{} : take(items & join.right);
    ItemSet sources = left.sources;
    if (type == "RIGHT") sources = right.sources;
    if (type == "FULL") sources |= right.sources;
    merged.push_back({left.items | right.items, sources});
  }
  return merged;
}

int NameScope::ItemNamed(const std::string& alias) const {
  for (std::size_t i = 0; i < from_.items.size(); ++i) {
    if (!alias.empty() && sql::SameWord(from_.items[i].alias, alias)) return static_cast<int>(i);
  }
  return -1;
}

Reads NameScope::ReadsOf(const Json& expression) const {
  Reads reads;
  AddReads(expression, false, reads);
  return reads;
}

void NameScope::AddReads(const Json& node, bool nested, Reads& reads) const {
  const std::string_view kind = sql::ClassOf(node);
  if (kind == "COLUMN_REF") return AddColumn(node, nested, reads);
  if (kind == "PARAMETER" || kind == "LAMBDA" || kind == "STAR") reads.outside = true;
  if (sql::IsQueryNode(node)) reads.has_subquery = nested = true;
  const std::string function = sql::FunctionName(node);
  if (IsVolatile(function)) reads.is_volatile = true;
  if (!nested && (kind == "WINDOW" || OneOf(kAggregates, function))) reads.aggregates = true;
  if (!node.is_structured()) return;
  for (const Json& child : node) AddReads(child, nested, reads);
}

void NameScope::AddColumn(const Json& reference, bool nested, Reads& reads) const {
  const std::vector<std::string> path = sql::ColumnPath(reference);
  if (path.size() > 1) {
    if (const int item = ItemNamed(path[0]); item >= 0) {
      reads.items |= SetOf(static_cast<std::size_t>(item));
      return;
    }
  }
  const ItemSet items = ItemsWith(path.empty() ? "" : path[0]);
  reads.items |= items;
  if (items == 0 && !nested) reads.outside = true;
}

void NameScope::CollectOutside(const Json& expression, std::vector<Json>& columns) const {
  const std::vector<std::string> path = sql::ColumnPath(expression);
  if (!path.empty()) {
    const auto same = [&path](const Json& known) { return sql::ColumnPath(known) == path; };
    const bool inside = (path.size() > 1 && ItemNamed(path[0]) >= 0) || ItemsWith(path[0]) != 0;
    if (!inside && std::none_of(columns.begin(), columns.end(), same)) {
      columns.push_back(expression);
    }
    return;
  }
  if (!expression.is_structured()) return;
  for (const Json& child : expression) CollectOutside(child, columns);
}

NameScope::ArgumentReads NameScope::ResolveArgument(const Json& expression, bool nested) const {
  ArgumentReads reads;
  if (!described_) reads.computed = true;
  Resolve(expression, nested, reads);
  return reads;
}

void NameScope::Resolve(const Json& node, bool nested, ArgumentReads& reads) const {
  const std::string_view kind = sql::ClassOf(node);
  if (kind == "COLUMN_REF") {
    if (!described_) {
      if (const auto path = sql::ColumnPath(node); path.size() == 1)
        RefuseVolatile(sql::LowerCase(path[0]), node);
      return;
    }
    const auto items = ResolveColumn(node);
    if (!items && !nested && !reads.computed) FailAtUnknown(node);
    reads.items |= items.value_or(0);
    reads.outside = reads.outside || !items;
    return;
  }
  const std::string function = sql::FunctionName(node);
  RefuseVolatile(function, node);
  const bool call = function.starts_with("quail_") || function.starts_with("ai_");
  if (kind == "WINDOW" || kind == "SUBQUERY" || kind == "LAMBDA" || call ||
      OneOf(kAggregates, function)) {
    reads.computed = true;
  }
  if (!node.is_structured() || kind == "SUBQUERY") return;
  for (const Json& child : node) Resolve(child, nested, reads);
}

void NameScope::RefuseVolatile(const std::string& function, const Json& at) const {
  if (!IsVolatile(function)) return;
  throw source_.At(at, ErrorCode::kUnsupported,
                   "volatile functions in an argument of an AI call are not supported yet");
}

std::optional<ItemSet> NameScope::ResolveColumn(const Json& reference) const {
  const std::vector<std::string> path = sql::ColumnPath(reference);
  if (path.size() > 1) {
    if (const int item = ItemNamed(path[0]); item >= 0) {
      if (FindColumn(from_.items[static_cast<std::size_t>(item)].columns, path[1]) >= 0) {
        return SetOf(static_cast<std::size_t>(item));
      }
      throw source_.At(
          reference, ErrorCode::kBind,
          fmt::format("table {} has no column {}{}", path[0], path[1], Suggest(path[1])));
    }
  }
  const ItemSet items = SeenItemsWith(path[0]);
  if (items == 0) return std::nullopt;
  const std::vector<MergedColumn> merged = MergedIn(path[0], items);
  if (merged.size() > 1) FailAtAmbiguous(reference, merged[0].items, merged[1].items);
  if (merged.size() == 1) return merged[0].sources;
  if (std::popcount(items) > 1) FailAtAmbiguous(reference, items, items & (items - 1));
  return items;
}

/// The column may be one of the first item of each set.
void NameScope::FailAtAmbiguous(const Json& reference, ItemSet one, ItemSet other) const {
  const auto alias = [&](ItemSet items) { return from_.items[FirstOf(items)].alias; };
  throw source_.At(reference, ErrorCode::kBind,
                   fmt::format("column {0} is ambiguous: {1}.{0} or {2}.{0}",
                               sql::ColumnPath(reference)[0], alias(one), alias(other)));
}

void NameScope::FailAtUnknown(const Json& reference) const {
  const std::vector<std::string> path = sql::ColumnPath(reference);
  const std::string name = fmt::format("{}", fmt::join(path, "."));
  const bool text = name.find_first_of(" {?") != std::string::npos;
  throw source_.At(
      reference, ErrorCode::kBind,
      fmt::format("unknown column {}{}", name,
                  text ? ": \"..\" is a name; texts are written in '..'" : Suggest(path.back())));
}

NameScope::Column NameScope::ColumnOf(const Json& expression) const {
  const std::vector<std::string> path = sql::ColumnPath(expression);
  if (path.empty()) return {};
  if (path.size() == 2) {
    const int item = ItemNamed(path[0]);
    if (item < 0) return {};
    return {item, FindColumn(from_.items[static_cast<std::size_t>(item)].columns, path[1])};
  }
  const ItemSet sources = SourcesOf(path[0]);
  if (path.size() != 1 || sources == 0) return {};
  const std::size_t item = FirstOf(sources);
  return {static_cast<int>(item), FindColumn(from_.items[item].columns, path[0])};
}

bool NameScope::IsColumn(const std::string& item, const std::string& column) const {
  const int named = ItemNamed(item);
  return named >= 0 &&
         FindColumn(from_.items[static_cast<std::size_t>(named)].columns, column) >= 0;
}

const Json* NameScope::FirstColumnOfType(const Json& expression, std::string_view type) const {
  if (sql::ClassOf(expression) == "COLUMN_REF") {
    const std::vector<std::string> path = sql::ColumnPath(expression);
    const int named = path.size() > 1 ? ItemNamed(path[0]) : -1;
    const std::string& name = path[named >= 0 ? 1 : 0];
    for (std::size_t i = 0; i < from_.items.size(); ++i) {
      if (named >= 0 && i != static_cast<std::size_t>(named)) continue;
      const int column = FindColumn(from_.items[i].columns, name);
      if (column < 0) continue;
      if (from_.items[i].columns[static_cast<std::size_t>(column)].type == type) {
        return &expression;
      }
    }
    return nullptr;
  }
  if (!expression.is_structured()) return nullptr;
  for (const Json& child : expression) {
    if (const Json* found = FirstColumnOfType(child, type)) return found;
  }
  return nullptr;
}

/// " (columns: a, b, c)", the candidates a reader looks for.
std::string NameScope::Suggest(const std::string& name) const {
  std::vector<std::string> names;
  for (const FromItem& item : from_.items) {
    for (const columnar::Field& field : item.columns) {
      if (!field.name.starts_with("quail_")) names.push_back(field.name);
    }
  }
  const std::string lower = sql::LowerCase(name);
  std::stable_partition(names.begin(), names.end(), [&](const std::string& candidate) {
    const std::string other = sql::LowerCase(candidate);
    return other.starts_with(lower.substr(0, 2)) || other.find(lower) != std::string::npos;
  });
  if (names.empty()) return {};
  // A file that is no CSV has any bytes in its first line.
  for (std::string& candidate : names) candidate = base::Escaped(candidate);
  const bool more = names.size() > 8;
  if (more) names.resize(8);
  return fmt::format(" (columns: {}{})", fmt::join(names, ", "), more ? ", .." : "");
}

}  // namespace quail::plan
