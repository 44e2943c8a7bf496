#include <algorithm>
#include <bit>

#include "columnar/tokens_type.h"
#include "fmt/format.h"
#include "plan/ai_call.h"
#include "plan/block_binder.h"
#include "sql/lexer.h"

/// BlockBinder: AI calls become entries of the plan and lookups in the tree.
namespace quail::plan {

using sql::Json;

void BlockBinder::BindCallsIn(Json& node) {
  if (sql::IsQueryNode(node)) return;
  if (IsAiCall(node)) return BindCall(node);
  if (!node.is_object()) return;
  sql::ForEachChild(node, [this](Json& child) { BindCallsIn(child); });
}

void BlockBinder::BindCall(Json& node) {
  AiCall read = ReadAiCall(node, source_);
  for (const std::string& notice : read.notices) state_.AddNotice(notice);
  ItemSet all = 0;
  std::vector<ItemSet> reads;
  for (const Json& argument : read.prompt.arguments) {
    reads.push_back(ResolveArgument(argument));
    if (std::popcount(reads.back()) > 1) {
      throw source_.At(
          argument, ErrorCode::kUnsupported,
          "one argument of an AI call that reads two tables is not supported yet; give "
          "each its own argument");
    }
    all |= reads.back();
  }
  if (std::popcount(all) > 2) {
    throw source_.At(node, ErrorCode::kUnsupported,
                     "an AI call over three or more tables is not supported yet");
  }
  Call call;
  call.kind = read.kind;
  call.function = read.function->name;
  call.prompt = read.prompt.pattern;
  call.options = read.options;
  call.position = source_.PlaceOf(node);
  const ItemSet first =
      reads.empty() || all == 0 ? 0 : SetOf(static_cast<std::size_t>(std::countr_zero(all)));
  for (std::size_t i = 0; i < reads.size(); ++i) {
    call.arguments.push_back(
        BindArgument(read.prompt.arguments[i], reads[i] != 0 ? reads[i] : first));
  }
  CheckAnchor(call, node);
  if (all == 0 && call.kind != CallKind::kCountTokens) {
    state_.AddNotice(
        fmt::format("the prompt of {} uses no column: it is asked once", call.function));
  }
  call.id = state_.AddCall(call);
  const std::string alias(sql::AliasOf(node));
  Json lookup = writer_.ParseExpression(LookupSql(call));
  lookup[kCallMark] = call.id.value();
  lookup["alias"] = alias;
  node = std::move(lookup);
}

ItemSet BlockBinder::ResolveArgument(const Json& argument) const {
  try {
    return scope_.ResolveArgument(argument);
  } catch (const Error& error) {
    const bool unknown = std::string_view(error.what()).starts_with("unknown column");
    if (!place_.nested || !unknown) throw;
    throw Error(ErrorCode::kUnsupported,
                fmt::format("{}; an AI call that reads a column of an enclosing query is not "
                            "supported yet",
                            error.what()),
                error.position());
  }
}

Argument BlockBinder::BindArgument(const Json& expression, ItemSet items) {
  Argument argument;
  argument.sql = writer_.PrintExpression(expression);
  argument.relation = RelationId(static_cast<std::uint32_t>(first_relation_));
  if (items == 0) return argument;
  const auto index = static_cast<std::size_t>(std::countr_zero(items));
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
  switch (call.kind) {
    case CallKind::kFilter:
      if (call.options.return_error_details) {
        return fmt::format(
            "struct_pack(\"value\" := quail_verdict({0}), error := quail_error({0}))", arguments);
      }
      return fmt::format("quail_verdict({})", arguments);
    case CallKind::kProbability:
      return fmt::format("quail_probability({})", arguments);
    case CallKind::kCountTokens:
      return fmt::format("quail_tokens({})", arguments);
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
