#include "exec/statement_verdicts.h"

#include <algorithm>
#include <variant>

#include "base/check.h"

namespace quail::exec {
namespace {

/// The side whose texts come first in the call's prompts, as the step that asks it says; nothing
/// for a filter's layout.
std::optional<plan::RelationId> AnchorOf(const plan::PhysicalPlan& plan, const plan::Call& call) {
  for (const plan::Step& step : plan.steps) {
    if (const auto* column = std::get_if<plan::AskColumnStep>(&step)) {
      if (column->call == call.id) return column->anchor;
    }
    if (const auto* join = std::get_if<plan::AskJoinStep>(&step)) {
      for (const plan::Predicate& stage : join->stages) {
        if (stage.call == call.id) return join->anchor;
      }
    }
  }
  return std::nullopt;
}

Question QuestionOf(const plan::PhysicalPlan& plan, const plan::Call& call) {
  Question question{call.prompt, call.arguments.size(), call.on_demand_anchor,
                    call.options.on_long};
  if (const auto anchor = AnchorOf(plan, call)) {
    for (const plan::Argument& argument : call.arguments) {
      question.is_anchor.push_back(argument.relation == *anchor);
    }
  }
  return question;
}

bool NeedsMargin(const plan::Call& call) {
  return call.kind == plan::CallKind::kProbability || call.options.threshold.has_value();
}

}  // namespace

StatementVerdicts::StatementVerdicts(const plan::PhysicalPlan& plan) : calls_(plan.calls) {
  std::vector<bool> needs_margin;
  for (const plan::Call& call : calls_) {
    QUAIL_CHECK_EQ(call.id.value(), question_of_.size());
    const Question question = QuestionOf(plan, call);
    const auto found = std::ranges::find(questions_, question);
    question_of_.push_back(static_cast<std::size_t>(found - questions_.begin()));
    if (found == questions_.end()) {
      questions_.push_back(question);
      needs_margin.push_back(false);
    }
    if (NeedsMargin(call)) needs_margin[question_of_.back()] = true;
  }
  for (std::size_t i = 0; i < questions_.size(); ++i) {
    tables_.emplace_back(questions_[i].width, needs_margin[i]);
  }
}

Judgement StatementVerdicts::Find(plan::CallId call, std::span<const TextId> key) const {
  const VerdictTable& table = tables_[question_of(call)];
  QUAIL_CHECK_EQ(key.size(), table.width());
  if (HasNull(key)) return {};
  return table.Find(key);
}

std::optional<bool> StatementVerdicts::Truth(plan::CallId call, const Judgement& judgement) const {
  if (judgement.verdict != Verdict::kTrue && judgement.verdict != Verdict::kFalse) {
    return std::nullopt;
  }
  const auto threshold = calls_[call.value()].options.threshold;
  if (threshold) return exec::Probability(judgement.margin) > *threshold;
  return judgement.verdict == Verdict::kTrue;
}

std::optional<bool> StatementVerdicts::Truth(plan::CallId call, std::span<const TextId> key) const {
  return Truth(call, Find(call, key));
}

std::optional<double> StatementVerdicts::Probability(plan::CallId call,
                                                     std::span<const TextId> key) const {
  const Judgement judgement = Find(call, key);
  if (judgement.verdict != Verdict::kTrue && judgement.verdict != Verdict::kFalse) {
    return std::nullopt;
  }
  QUAIL_CHECK(tables_[question_of(call)].keeps_margins());
  return exec::Probability(judgement.margin);
}

std::optional<std::string> StatementVerdicts::Failure(plan::CallId call,
                                                      std::span<const TextId> key) const {
  const Judgement judgement = Find(call, key);
  if (judgement.verdict != Verdict::kError) return std::nullopt;
  return tables_[question_of(call)].reasons()[judgement.reason];
}

}  // namespace quail::exec
