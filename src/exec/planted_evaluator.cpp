#include "exec/planted_evaluator.h"

#include <fmt/format.h>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

std::uint64_t Packed(std::span<const TextId> key) {
  std::uint64_t packed = 0;
  for (const TextId id : key) packed = (packed << 32U) | id.value();
  return packed;
}

}  // namespace

void PlantedAnswers::Plant(std::string_view prompt) { tables_.try_emplace(std::string(prompt)); }

void PlantedAnswers::Add(std::string_view prompt, std::span<const TextId> key) {
  if (key.empty() || key.size() > 2) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("answers can be planted for one or two texts, not {}", key.size()));
  }
  const auto found = tables_.find(prompt);
  QUAIL_CHECK(found != tables_.end());
  found->second.insert(Packed(key));
}

void PlantedAnswers::Require(const Question& question) const {
  if (Has(question.prompt) && question.width > 0 && question.width <= 2) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("no answers are planted for the prompt '{}'", question.prompt));
}

PlantedAnswer PlantedAnswers::Of(const Question& question, std::span<const TextId> key) const {
  const auto found = tables_.find(question.prompt);
  QUAIL_CHECK(found != tables_.end());
  return found->second.contains(Packed(key)) ? PlantedAnswer{Verdict::kTrue, 1.0F, ""}
                                             : PlantedAnswer{Verdict::kFalse, -1.0F, ""};
}

PlantedAnswer FunctionAnswers::Of(const Question& question, std::span<const TextId> key) const {
  std::vector<std::string_view> arguments;
  for (const TextId id : key) arguments.push_back(texts_.text(id));
  return function_(question.prompt, arguments);
}

void PlantedEvaluator::Begin() {
  questions_.clear();
  open_.clear();
  model_.Begin();
}

QuestionId PlantedEvaluator::Add(const Question& question) {
  answers_.Require(question);
  const QuestionId id = model_.Add(question);
  QUAIL_CHECK_EQ(id.value(), questions_.size());
  questions_.push_back(question);
  return id;
}

void PlantedEvaluator::Ask(const FilterAsk& ask) {
  open_[ask.tag] = {ask.question.value(), {ask.key.begin(), ask.key.end()}, nullptr, 1};
  model_.Ask(ask);
}

void PlantedEvaluator::Ask(const JoinAsk& ask) {
  const std::size_t count = ask.subset ? ask.subset->size() : ask.partners->size();
  open_[ask.tag] = {
      ask.question.value(), {ask.anchor_key.begin(), ask.anchor_key.end()}, ask.partners, count};
  model_.Ask(ask);
}

void PlantedEvaluator::Replace(const Open& open, Outcome& outcome) {
  if (outcome.verdict != Verdict::kTrue && outcome.verdict != Verdict::kFalse) return;
  const Question& question = questions_[open.question];
  key_.clear();
  if (open.partners) {
    const auto partner = open.partners->key(outcome.index);
    std::size_t from_anchor = 0;
    std::size_t from_partner = 0;
    for (const bool anchor : question.is_anchor) {
      key_.push_back(anchor ? open.key[from_anchor++] : partner[from_partner++]);
    }
  } else {
    key_ = open.key;
  }
  PlantedAnswer answer = answers_.Of(question, key_);
  outcome.verdict = answer.verdict;
  outcome.margin = answer.margin;
  outcome.reason = std::move(answer.reason);
}

bool PlantedEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  const std::size_t begin = outcomes.size();
  const bool more = model_.Next(outcomes, cancel);
  for (std::size_t i = begin; i < outcomes.size(); ++i) {
    const auto open = open_.find(outcomes[i].tag);
    QUAIL_CHECK(open != open_.end());
    Replace(open->second, outcomes[i]);
    if (--open->second.waiting == 0) open_.erase(open);
  }
  return more;
}

void PlantedEvaluator::Withdraw() {
  open_.clear();
  model_.Withdraw();
}

}  // namespace quail::exec
