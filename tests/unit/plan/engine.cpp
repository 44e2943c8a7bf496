#include "engine.h"

#include <mutex>

#include "plan/sql_writer.h"

namespace quail::plan {

namespace {

using relational::ScalarColumn;
using relational::ScalarFunction;
using relational::ScalarOutput;
using relational::ScalarType;

std::mutex intern_mutex;

}  // namespace

std::optional<bool> EngineTest::Verdict(std::span<const ScalarColumn> arguments, std::size_t row) {
  std::string key;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i].is_null(row)) return std::nullopt;
    if (i > 1) key += ",";
    key += texts_.at(static_cast<std::size_t>(arguments[i].integers[row]));
  }
  const auto found = verdicts_.find(key);
  return found == verdicts_.end() ? std::nullopt : std::optional(found->second);
}

std::string EngineTest::FillSql(const LogicalPlan& plan, const AiConjunct& conjunct) {
  std::string columns;
  for (const Argument& argument : plan.calls[conjunct.calls[0].call.value()].arguments) {
    columns += (columns.empty() ? "" : ", ") +
               ColumnSql(plan.relations[argument.relation.value()].alias, argument.id_column);
  }
  std::string from;
  for (const RelationId id : conjunct.relations) {
    const Relation& relation = plan.relations[id.value()];
    from += (from.empty() ? "" : ", ") + relation.table + " AS " + relation.alias;
  }
  return "INSERT INTO " + conjunct.pairs->name + " SELECT DISTINCT " + columns + " FROM " + from +
         " WHERE " + conjunct.sql;
}

void EngineTest::RegisterLookups() {
  ScalarFunction intern{
      "quail_text_id", {ScalarType::kText}, std::nullopt, ScalarType::kInteger, {}};
  intern.invoke = [this](std::span<const ScalarColumn> in, std::size_t rows, ScalarOutput& out) {
    const std::lock_guard lock(intern_mutex);
    for (std::size_t row = 0; row < rows; ++row) {
      if (in[0].is_null(row)) {
        out.SetNull(row);
        continue;
      }
      const std::string text(in[0].texts[row]);
      const auto [found, added] = ids_.try_emplace(text, static_cast<std::int32_t>(ids_.size()));
      if (added) texts_.push_back(text);
      out.SetInteger(row, found->second);
    }
  };
  connection_->Register(intern);
  ScalarFunction tokens = intern;
  tokens.name = "quail_token_list_id";
  tokens.parameters = {ScalarType::kIntegerList};
  tokens.invoke = [](std::span<const ScalarColumn> in, std::size_t rows, ScalarOutput& out) {
    for (std::size_t row = 0; row < rows; ++row) {
      out.SetInteger(row, static_cast<std::int32_t>(in[0].list_lengths[row]));
    }
  };
  connection_->Register(tokens);
  ScalarFunction verdict{
      "quail_verdict", {ScalarType::kInteger}, ScalarType::kInteger, ScalarType::kBoolean, {}};
  verdict.invoke = [this](std::span<const ScalarColumn> in, std::size_t rows, ScalarOutput& out) {
    for (std::size_t row = 0; row < rows; ++row) {
      if (const auto value = Verdict(in, row)) {
        out.SetBoolean(row, *value);
      } else {
        out.SetNull(row);
      }
    }
  };
  connection_->Register(verdict);
  ScalarFunction probability = verdict;
  probability.name = "quail_probability";
  probability.result = ScalarType::kDouble;
  probability.invoke = [this](std::span<const ScalarColumn> in, std::size_t rows,
                              ScalarOutput& out) {
    for (std::size_t row = 0; row < rows; ++row) {
      const auto value = Verdict(in, row);
      if (value) out.SetDouble(row, *value ? 0.75 : 0.25);
      if (!value) out.SetNull(row);
    }
  };
  connection_->Register(probability);
  ScalarFunction error = verdict;
  error.name = "quail_error";
  error.result = ScalarType::kText;
  error.invoke = [](std::span<const ScalarColumn>, std::size_t rows, ScalarOutput& out) {
    for (std::size_t row = 0; row < rows; ++row) out.SetNull(row);
  };
  connection_->Register(error);
  ScalarFunction count = verdict;
  count.name = "quail_tokens";
  count.result = ScalarType::kInteger;
  count.invoke = [](std::span<const ScalarColumn>, std::size_t rows, ScalarOutput& out) {
    for (std::size_t row = 0; row < rows; ++row) out.SetInteger(row, 7);
  };
  connection_->Register(count);
}

}  // namespace quail::plan
