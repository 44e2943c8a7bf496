#include "exec/step_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "exec/operators/ask_filter.h"
#include "exec/operators/ask_join.h"

namespace quail::exec {
namespace {

std::size_t Position(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  QUAIL_CHECK(found != names.end());
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

const plan::Relation& StepBuilder::relation(plan::RelationId id) const {
  const auto found = std::ranges::find(plan_.relations, id, &plan::Relation::id);
  QUAIL_CHECK(found != plan_.relations.end());
  return *found;
}

std::string StepBuilder::Survival(plan::RelationId id) const {
  std::string condition;
  for (std::size_t i = 0; i < pipeline_.asking.front(); ++i) {
    const auto* filter = std::get_if<plan::AskFilterStep>(&plan_.steps[i]);
    if (filter == nullptr || filter->relation != id) continue;
    for (const plan::Predicate& predicate : filter->predicates) {
      std::string arguments;
      for (const plan::Argument& argument : plan_.calls[predicate.call.value()].arguments) {
        arguments += ", " + argument.id_column;
      }
      condition += fmt::format("{}{}quail_verdict({}{})", condition.empty() ? "" : " AND ",
                               predicate.negated ? "NOT " : "", predicate.call.value(), arguments);
    }
  }
  return condition;
}

std::vector<std::size_t> StepBuilder::AdmittedBy(
    std::size_t place, const std::vector<std::string>& anchor_columns) const {
  const plan::Step& before = plan_.steps[pipeline_.asking[place - 1]];
  const auto* filter = std::get_if<plan::AskFilterStep>(&before);
  const auto names = filter != nullptr
                         ? ColumnsOf(plan_, filter->relation, filter->predicates)
                         : ColumnsOf(plan_, std::get<plan::AskJoinStep>(before).anchor,
                                     std::get<plan::AskJoinStep>(before).stages);
  std::vector<std::size_t> columns;
  columns.reserve(names.size());
  for (const std::string& name : names) columns.push_back(Position(anchor_columns, name));
  return columns;
}

std::unique_ptr<StepRun> StepBuilder::Build(const StepContext& context) const {
  return std::visit(
      [&](const auto& kind) -> std::unique_ptr<StepRun> {
        if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, plan::RelationalStep>) {
          QUAIL_CHECK_MSG(false, "a relational step asks nothing");
        } else if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, plan::AskOnDemandStep>) {
          QUAIL_CHECK_MSG(false, "a step on demand has no domain of its own");
        } else {
          return Build(context, kind);
        }
      },
      plan_.steps[pipeline_.asking[context.place]]);
}

std::unique_ptr<StepRun> StepBuilder::Build(const StepContext& context,
                                            const plan::AskFilterStep& step) const {
  AskFilter::Options options;
  options.feeds_later_step = step.feeds.has_value();
  const auto columns = ColumnsOf(plan_, step.relation, step.predicates);
  for (const plan::Predicate& predicate : step.predicates) {
    Stage stage{predicate.call, predicate.negated, {}};
    for (const plan::Argument& argument : plan_.calls[predicate.call.value()].arguments) {
      stage.columns.push_back(Position(columns, argument.id_column));
    }
    options.stages.push_back(std::move(stage));
  }
  Domain domain =
      ReadTableDomain(connection_, relation(step.relation).table, columns, Survival(step.relation));
  return std::make_unique<AskFilter>(context, std::move(domain), std::move(options));
}

std::unique_ptr<StepRun> StepBuilder::Build(const StepContext& context,
                                            const plan::AskJoinStep& step) const {
  const auto anchor_columns = ColumnsOf(plan_, step.anchor, step.stages);
  const auto partner_columns = ColumnsOf(plan_, step.partner, step.stages);
  AskJoin::Options options;
  if (context.place > 0) options.admitted_by = AdmittedBy(context.place, anchor_columns);
  for (const plan::Predicate& predicate : step.stages) {
    Stage stage{predicate.call, predicate.negated, {}};
    for (const plan::Argument& argument : plan_.calls[predicate.call.value()].arguments) {
      const bool anchor = argument.relation == step.anchor;
      QUAIL_CHECK(anchor || argument.relation == step.partner);
      stage.columns.push_back(anchor ? Position(anchor_columns, argument.id_column)
                                     : anchor_columns.size() +
                                           Position(partner_columns, argument.id_column));
    }
    options.stages.push_back(std::move(stage));
  }
  PairDomain domain;
  if (step.pairs_sql.empty()) {
    domain = PairDomain::Cross(ReadTableDomain(connection_, relation(step.anchor).table,
                                               anchor_columns, Survival(step.anchor)),
                               ReadTableDomain(connection_, relation(step.partner).table,
                                               partner_columns, Survival(step.partner)));
  } else {
    domain = PairDomain::Sparse(
        ReadDomain(connection_, step.pairs_sql, anchor_columns.size() + partner_columns.size()),
        anchor_columns.size());
  }
  return std::make_unique<AskJoin>(context, std::move(domain), std::move(options));
}

std::unique_ptr<StepRun> StepBuilder::Build(const StepContext& context,
                                            const plan::AskColumnStep& step) const {
  const auto& arguments = plan_.calls[step.call.value()].arguments;
  Domain domain = ReadDomain(connection_, step.domain_sql, arguments.size());
  Stage stage{step.call, false, {}};
  if (!step.anchor) {
    for (std::size_t i = 0; i < arguments.size(); ++i) stage.columns.push_back(i);
    AskFilter::Options options{{std::move(stage)}, false, true};
    return std::make_unique<AskFilter>(context, std::move(domain), std::move(options));
  }
  // Anchor's columns first.
  std::vector<std::size_t> order;
  for (const bool anchor_side : {true, false}) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if ((arguments[i].relation == *step.anchor) == anchor_side) order.push_back(i);
    }
  }
  Domain pairs{domain.width, {}, domain.weights};
  for (std::size_t row = 0; row < domain.size(); ++row) {
    for (const std::size_t column : order) pairs.ids.push_back(domain.row(row)[column]);
  }
  stage.columns.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) stage.columns[order[i]] = i;
  const auto anchor_width = static_cast<std::size_t>(std::ranges::count(
      arguments, *step.anchor, [](const plan::Argument& argument) { return argument.relation; }));
  return std::make_unique<AskJoin>(context, PairDomain::Sparse(pairs, anchor_width),
                                   AskJoin::Options{{std::move(stage)}, true});
}

StepCounters DescribeStep(const plan::PhysicalPlan& plan, std::size_t step) {
  const auto alias = [&](plan::RelationId id) {
    return std::ranges::find(plan.relations, id, &plan::Relation::id)->alias;
  };
  StepCounters described;
  described.step = step;
  if (const auto* filter = std::get_if<plan::AskFilterStep>(&plan.steps[step])) {
    described.kind = "filter";
    described.tables = {alias(filter->relation)};
  } else if (const auto* join = std::get_if<plan::AskJoinStep>(&plan.steps[step])) {
    described.kind = "join";
    described.tables = {alias(join->anchor), alias(join->partner)};
    described.anchor = alias(join->anchor);
  } else if (const auto* column = std::get_if<plan::AskColumnStep>(&plan.steps[step])) {
    described.kind = "column";
    for (const plan::Argument& argument : plan.calls[column->call.value()].arguments) {
      if (argument.id_column.empty()) continue;
      const std::string name = alias(argument.relation);
      if (std::ranges::find(described.tables, name) == described.tables.end()) {
        described.tables.push_back(name);
      }
    }
    if (column->anchor) described.anchor = alias(*column->anchor);
  } else {
    QUAIL_CHECK(std::holds_alternative<plan::AskOnDemandStep>(plan.steps[step]));
    described.kind = "on demand";
  }
  return described;
}

}  // namespace quail::exec
