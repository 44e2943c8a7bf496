#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "columnar/tokens_type.h"
#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"
#include "plan/lazy_calls.h"
#include "plan/list_concatenation.h"
#include "sql/lexer.h"

/// BlockBinder: AI calls become entries of the plan and lookups in the tree.
namespace quail::plan {

using sql::Json;

namespace {

bool HasAggregate(const Json& node) {
  if (sql::IsQueryNode(node)) return false;
  if (sql::ClassOf(node) == "FUNCTION" && IsAggregate(sql::FunctionName(node))) return true;
  if (!node.is_structured()) return false;
  return std::any_of(node.begin(), node.end(),
                     [](const Json& child) { return HasAggregate(child); });
}

constexpr std::array<std::string_view, 10> kStrict = {
    "upper", "lower", "||", "left", "right", "substr", "substring", "trim", "length", "replace"};

/// Whether an expression is certainly NULL where the columns that it reads are.
bool IsStrict(const Json& node) {
  if (!sql::ColumnPath(node).empty()) return true;
  if (sql::ClassOf(node) == "CAST") return IsStrict(node["child"]);
  if (sql::ClassOf(node) != "FUNCTION") return false;
  const std::string name = sql::FunctionName(node);
  if (std::find(kStrict.begin(), kStrict.end(), name) == kStrict.end()) return false;
  const Json& children = node["children"];
  return std::all_of(children.begin(), children.end(), [](const Json& child) {
    return sql::ClassOf(child) == "CONSTANT" || IsStrict(child);
  });
}

std::string Placeholder(std::size_t argument) { return fmt::format("quail_argument_{}", argument); }

/// Puts `value` in the place of every column of that name.
void ReplaceColumn(Json& node, const std::string& name, const Json& value) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() == 1 && path[0] == name) {
    node = value;
    return;
  }
  sql::ForEachChild(node, [&](Json& child) { ReplaceColumn(child, name, value); });
}

/// The first part of the first dotted name below `node`.
std::string QualifierIn(const Json& node) {
  const std::vector<std::string> path = sql::ColumnPath(node);
  if (path.size() > 1) return path[0];
  if (!node.is_structured()) return {};
  for (const Json& child : node) {
    if (std::string name = QualifierIn(child); !name.empty()) return name;
  }
  return {};
}

}  // namespace

bool BlockBinder::IsGrouped() const {
  if (!select_["group_expressions"].empty() || !sql::IsAbsent(select_, "having")) return true;
  return HasAggregate(select_["select_list"]);
}

/// GROUP BY ALL.
bool BlockBinder::ForcesAggregates() const {
  return sql::TextMember(select_, "aggregate_handling") == "FORCE_AGGREGATES";
}

/// The expressions of the select list that are keys of the grouping: by alias, position or ALL.
std::vector<Json*> BlockBinder::KeyItems() {
  std::vector<Json*> keys;
  Json& list = select_["select_list"];
  if (ForcesAggregates()) {
    for (Json& item : list) {
      if (!HasAggregate(item)) keys.push_back(&item);
    }
    return keys;
  }
  for (const Json& key : select_["group_expressions"]) {
    const auto constant = sql::ConstantOf(key);
    const std::vector<std::string> path = sql::ColumnPath(key);
    if (constant && constant->kind == sql::ConstantKind::kNumber) {
      const auto position = static_cast<std::size_t>(constant->number);
      if (position >= 1 && position <= list.size()) keys.push_back(&list[position - 1]);
    } else if (path.size() == 1) {
      // A column of that name is meant before an alias.
      const auto item = AliasedItem(path[0], list.size());
      if (item) keys.push_back(&list[*item]);
    }
  }
  return keys;
}

void BlockBinder::NoteKeyCalls(const Json& node) {
  if (IsAiCall(node)) key_calls_.insert(writer_.PrintExpression(node));
  if (!node.is_structured()) return;
  for (const Json& child : node) NoteKeyCalls(child);
}

void BlockBinder::BindAllCalls() {
  const bool grouped = IsGrouped();
  std::vector<Json*> keys;
  if (grouped) {
    keys = KeyItems();
    NoteKeyCalls(select_["group_expressions"]);
    for (const Json* item : keys) NoteKeyCalls(*item);
  }
  by_group_ = ForcesAggregates();
  for (Json* item : keys) BindCallsIn(*item);
  const Json& groups = select_["group_expressions"];
  for (Json* expression : sql::ExpressionsOf(select_)) {
    const bool of_rows = expression == &select_["where_clause"] ||
                         std::any_of(groups.begin(), groups.end(),
                                     [expression](const Json& key) { return &key == expression; });
    by_group_ = grouped && !of_rows;
    BindCallsIn(*expression);
  }
  by_group_ = false;
  for (const FromJoin& join : from_.joins) {
    scope_.SeeJoin(join);
    BindCallsIn((*join.node)["condition"]);
  }
  scope_.SeeResult();
}

void BlockBinder::BindOnDemand() {
  scope_.LeaveUndescribed();
  NameResultColumns();
  for (Json* expression : sql::ExpressionsOf(select_)) BindCallsIn(*expression);
  BindCallsIn(select_["from_table"]);
  ReadOnDemandLazily();
}

void BlockBinder::ReadOnDemandLazily() {
  for (Json* expression : sql::ExpressionsOf(select_)) {
    const bool filter = expression == &select_["where_clause"] ||
                        expression == &select_["having"] || expression == &select_["qualify"];
    ReadLazily(*expression, filter ? ValueUse::kFilter : ValueUse::kAny, scope_, writer_);
  }
  for (const FromJoin& join : from_.joins) {
    ReadLazily((*join.node)["condition"], ValueUse::kFilter, scope_, writer_);
  }
}

void BlockBinder::BindCallsIn(Json& node) {
  if (sql::IsQueryNode(node)) return;
  if (IsAiCall(node)) return BindCall(node);
  if (!node.is_object()) return;
  const bool by_group = by_group_;
  if (sql::ClassOf(node) == "FUNCTION" && IsAggregate(sql::FunctionName(node))) by_group_ = false;
  sql::ForEachChild(node, [this](Json& child) { BindCallsIn(child); });
  by_group_ = by_group;
}

void BlockBinder::BindCall(Json& node) {
  CastListConcatenations(node, writer_, [this](const Json& part) { return IsList(part); });
  AiCall read = ReadAiCall(node, source_);
  for (const std::string& notice : read.notices) state_.AddNotice(notice);
  state_.drops_expressions |= read.prompt.drops_expressions;
  Call call;
  call.kind = read.kind;
  call.function = read.function->name;
  call.prompt = read.prompt.pattern;
  call.options = read.options;
  call.position = source_.PlaceOf(node);
  std::vector<BoundArgument> arguments;
  arguments.reserve(read.prompt.arguments.size());
  for (Json& argument : read.prompt.arguments) {
    arguments.push_back({&argument, scope_.ResolveArgument(argument, place_.nested)});
  }
  if (arguments.empty() && call.kind != CallKind::kCountTokens) {
    state_.AddNotice(
        fmt::format("the prompt of {} uses no column: it is asked once", call.function));
  }
  const std::string alias(sql::AliasOf(node));
  Json lookup;
  if (NeedsEngine(arguments, node)) {
    lookup = BindOnDemand(std::move(call), arguments, node);
  } else {
    const Call bound = BindPlanned(std::move(call), arguments, node);
    lookup = writer_.ParseExpression(LookupSql(bound));
    lookup[kCallMark] = bound.id.value();
  }
  lookup["alias"] = alias;
  node = std::move(lookup);
}

/// Whether no relation's rows have the arguments.
bool BlockBinder::NeedsEngine(const std::vector<BoundArgument>& arguments, const Json& node) const {
  ItemSet all = 0;
  for (const BoundArgument& argument : arguments) {
    const bool one_side = std::popcount(argument.reads.items) <= 1;
    if (!one_side || argument.reads.outside || argument.reads.computed) return true;
    const bool missing =
        argument.reads.items != 0 && from_.items[FirstOf(argument.reads.items)].missing;
    if (missing && !IsStrict(*argument.expression)) return true;
    all |= argument.reads.items;
  }
  if (on_demand_ || std::popcount(all) > 2) return true;
  if (!by_group_) return false;
  // GROUP BY ALL over constants has a group, and so a value, though no row reaches it.
  return (all == 0 && ForcesAggregates()) || !key_calls_.contains(writer_.PrintExpression(node));
}

Call BlockBinder::BindPlanned(Call call, const std::vector<BoundArgument>& arguments,
                              const Json& node) {
  ItemSet all = 0;
  for (const BoundArgument& argument : arguments) all |= argument.reads.items;
  const ItemSet first = all == 0 ? 0 : SetOf(FirstOf(all));
  for (const BoundArgument& argument : arguments) {
    const ItemSet items = argument.reads.items;
    call.arguments.push_back(BindArgument(*argument.expression, items != 0 ? items : first));
  }
  CheckAnchor(call, node);
  call.id = state_.AddCall(call);
  return call;
}

Json BlockBinder::BindOnDemand(Call call, const std::vector<BoundArgument>& arguments,
                               const Json& node) {
  const auto stop = std::exchange(early_stop_, std::nullopt);  // not for calls in arguments
  std::string ids;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    call.arguments.push_back(
        {RelationId(0), "", writer_.PrintExpression(*arguments[i].expression)});
    const auto column = scope_.ColumnOf(*arguments[i].expression);
    const bool tokens = column.item >= 0 && column.column >= 0 &&
                        from_.items[static_cast<std::size_t>(column.item)]
                                .columns[static_cast<std::size_t>(column.column)]
                                .type == "INTEGER[]";
    ids += tokens ? fmt::format(", quail_token_list_id({})", Placeholder(i))
                  : fmt::format(", quail_text_id(CAST({} AS VARCHAR))", Placeholder(i));
  }
  ChooseAnchor(call, arguments, node);
  call.on_demand = call.kind != CallKind::kCountTokens;
  call.id = state_.AddCall(call);
  for (const BoundArgument& argument : arguments) BindCallsIn(*argument.expression);
  const auto with_arguments = [&](const std::string& sql) {
    Json lookup = writer_.ParseExpression(sql);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      ReplaceColumn(lookup, Placeholder(i), *arguments[i].expression);
    }
    return lookup;
  };
  const std::string plain = std::to_string(call.id.value()) + ids;
  early_stop_ = stop;
  if (!call.on_demand) return with_arguments(LookupSql(call, plain));
  std::string read = LookupSql(call, plain);
  std::string decided = fmt::format("quail_is_decided({})", plain);
  if (stop) {
    state_.plan.early_stops[stop->number].calls.push_back(call.id);
    const std::string until =
        fmt::format("{}, {}, {}{}", stop->number, call.id.value(), stop->row, ids);
    read = LookupSql(call, until, "quail_{}_until");
    decided = fmt::format("quail_is_decided_until({})", until);
  }
  Json lookup = with_arguments(read);
  lookup[kOnDemandMark] = true;
  lookup[kKnownMark] =
      writer_.PrintExpression(with_arguments(LookupSql(call, plain, "quail_known_{}")));
  lookup[kDecidedMark] = writer_.PrintExpression(with_arguments(decided));
  return lookup;
}

/// Between two sides the side as the option says, else the first argument's.
void BlockBinder::ChooseAnchor(Call& call, const std::vector<BoundArgument>& arguments,
                               const Json& node) const {
  std::vector<std::string> sides;
  for (const BoundArgument& argument : arguments) {
    const ItemSet items = argument.reads.items;
    const bool named = std::popcount(items) == 1 && !argument.reads.outside;
    sides.push_back(named ? from_.items[FirstOf(items)].alias : QualifierIn(*argument.expression));
  }
  const auto is = [](const std::string& name) {
    return [&name](const std::string& side) { return sql::SameWord(side, name); };
  };
  if (call.options.anchor && std::none_of(sides.begin(), sides.end(), is(*call.options.anchor))) {
    throw source_.At(node, ErrorCode::kBind,
                     fmt::format("option anchor names '{}', which is no table of this call",
                                 *call.options.anchor));
  }
  if (sides.empty()) return;
  const std::string anchor = call.options.anchor.value_or(sides[0]);
  const auto other = std::find_if_not(sides.begin(), sides.end(), is(anchor));
  if (other == sides.end()) return;
  const auto of_two = [&](const std::string& side) { return is(anchor)(side) || is(*other)(side); };
  if (!std::all_of(sides.begin(), sides.end(), of_two)) return;
  for (const std::string& side : sides) call.on_demand_anchor.push_back(is(anchor)(side));
}

Argument BlockBinder::BindArgument(const Json& expression, ItemSet items) {
  Argument argument;
  argument.sql = writer_.PrintExpression(expression);
  argument.relation = RelationId(static_cast<std::uint32_t>(first_relation_));
  if (items == 0) return argument;
  const std::size_t index = FirstOf(items);
  Item& item = items_[index];
  argument.relation = item.relation;
  argument.tokens = IsTokens(expression, index);
  const auto same =
      std::find_if(item.id_columns.begin(), item.id_columns.end(),
                   [&](const IdColumn& column) { return column.argument_sql == argument.sql; });
  if (same != item.id_columns.end()) {
    argument.id_column = same->name;
    return argument;
  }
  argument.id_column = state_.NewIdColumn();
  item.id_columns.push_back({argument.id_column, argument.sql, argument.tokens});
  return argument;
}

/// Whether an argument is a TOKENS column, which it can only be as it is.
bool BlockBinder::IsTokens(const Json& expression, std::size_t item) const {
  const columnar::Schema& columns = from_.items[item].columns;
  const auto column = scope_.ColumnOf(expression);
  if (column.column >= 0) {
    return columns[static_cast<std::size_t>(column.column)].type == columnar::kTokensType;
  }
  if (const Json* inner = scope_.FirstColumnOfType(expression, columnar::kTokensType)) {
    throw source_.At(*inner, ErrorCode::kBind,
                     fmt::format("{} holds token ids (TOKENS): as an argument it stands by itself, "
                                 "in no expression over text",
                                 fmt::join(sql::ColumnPath(*inner), ".")));
  }
  return false;
}

std::string BlockBinder::LookupSql(const Call& call) const {
  std::string arguments = std::to_string(call.id.value());
  for (const Argument& argument : call.arguments) {
    const std::size_t item = argument.relation.value() - first_relation_;
    arguments +=
        fmt::format(", {}", argument.id_column.empty()
                                ? fmt::format("quail_text_id(CAST({} AS VARCHAR))", argument.sql)
                                : ColumnSql(from_.items[item].alias, argument.id_column));
  }
  return LookupSql(call, arguments);
}

std::string BlockBinder::LookupSql(const Call& call, const std::string& arguments,
                                   std::string_view form) {
  const auto lookup = [&](const char* kind) {
    return fmt::format("{}({})", fmt::format(fmt::runtime(form), kind), arguments);
  };
  switch (call.kind) {
    case CallKind::kFilter:
      if (call.options.return_error_details) {
        return fmt::format("struct_pack(\"value\" := {}, error := {})", lookup("verdict"),
                           lookup("error"));
      }
      return lookup("verdict");
    case CallKind::kProbability:
      return lookup("probability");
    case CallKind::kCountTokens:
      return lookup("tokens");
  }
  return {};
}

void BlockBinder::CheckAnchor(const Call& call, const Json& node) const {
  if (!call.options.anchor) return;
  const auto named = [&](const Argument& argument) {
    if (argument.id_column.empty()) return false;
    const std::size_t item = argument.relation.value() - first_relation_;
    return sql::SameWord(from_.items[item].alias, *call.options.anchor);
  };
  if (std::any_of(call.arguments.begin(), call.arguments.end(), named)) return;
  throw source_.At(node, ErrorCode::kBind,
                   fmt::format("option anchor names '{}', which is no table of this call",
                               *call.options.anchor));
}

}  // namespace quail::plan
