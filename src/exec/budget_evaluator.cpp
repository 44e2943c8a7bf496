#include "exec/budget_evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

/// Once nothing is evaluated any more, asks are refused this many at a time.
constexpr std::size_t kRefusedAtOnce = 16384;

}  // namespace

void BudgetEvaluator::Begin() {
  inner_.Begin();
  open_.clear();
  reason_.clear();
  refused_ = 0;
  watch_.Restart();
}

void BudgetEvaluator::Ask(const FilterAsk& ask) {
  const bool added = open_.try_emplace(ask.tag, Open{{false}, 1}).second;
  QUAIL_CHECK(added);
  last_step_ = std::max(last_step_, ask.step);
  if (!exhausted()) inner_.Ask(ask);
}

void BudgetEvaluator::Ask(const JoinAsk& ask) {
  Open open{std::vector<bool>(ask.partners->size(), ask.subset != nullptr), ask.partners->size()};
  if (ask.subset) {
    for (const std::uint32_t partner : *ask.subset) open.answered[partner] = false;
    open.left = ask.subset->size();
  }
  const bool added = open_.try_emplace(ask.tag, std::move(open)).second;
  QUAIL_CHECK(added);
  last_step_ = std::max(last_step_, ask.step);
  if (!exhausted()) inner_.Ask(ask);
}

void BudgetEvaluator::Expect(QuestionId question, std::span<const TextId> document_key, double p) {
  if (!exhausted()) inner_.Expect(question, document_key, p);
}

std::size_t BudgetEvaluator::room() const {
  if (!exhausted()) return inner_.room();
  return open_.size() >= kRefusedAtOnce ? 0 : kRefusedAtOnce - open_.size();
}

void BudgetEvaluator::Settle(const Outcome& outcome) {
  const auto found = open_.find(outcome.tag);
  QUAIL_CHECK(found != open_.end());
  const std::size_t index = found->second.answered.size() == 1 ? 0 : outcome.index;
  found->second.answered[index] = true;
  if (--found->second.left == 0) open_.erase(found);
}

void BudgetEvaluator::Check() {
  std::uint64_t fresh = 0;
  if (budget_.tokens && counts_tokens()) {
    for (std::uint16_t step = 0; step <= last_step_; ++step) fresh += inner_.tokens(step).fresh;
  }
  if (budget_.tokens && fresh >= *budget_.tokens) {
    reason_ = fmt::format("{}quail_max_tokens is {}", kBudgetReason, *budget_.tokens);
  } else if (budget_.seconds && watch_.seconds() >= *budget_.seconds) {
    reason_ = fmt::format("{}quail_max_seconds is {:g}", kBudgetReason, *budget_.seconds);
  }
  if (exhausted()) inner_.Withdraw();
}

void BudgetEvaluator::Refuse(std::vector<Outcome>& outcomes) {
  for (auto& [tag, open] : open_) {
    for (std::size_t i = 0; i < open.answered.size(); ++i) {
      if (open.answered[i]) continue;
      outcomes.push_back({tag, static_cast<std::uint32_t>(i), Verdict::kError, 0, reason_});
      ++refused_;
    }
  }
  open_.clear();
}

bool BudgetEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  if (!exhausted()) Check();
  if (exhausted()) {
    if (cancel != nullptr && cancel->cancelled()) {
      throw Error(ErrorCode::kInterrupted, "interrupted");
    }
    const std::size_t begin = outcomes.size();
    Refuse(outcomes);
    return outcomes.size() > begin;
  }
  const std::size_t begin = outcomes.size();
  if (!inner_.Next(outcomes, cancel)) return false;
  for (std::size_t i = begin; i < outcomes.size(); ++i) Settle(outcomes[i]);
  return true;
}

void BudgetEvaluator::Withdraw() {
  inner_.Withdraw();
  open_.clear();
}

}  // namespace quail::exec
