#include "exec/function_evaluator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "quail/error.h"

namespace quail::exec {

FunctionEvaluator::FunctionEvaluator(Function function, const text::TextStore& texts)
    : function_(std::move(function)), texts_(texts) {}

void FunctionEvaluator::Begin() {
  questions_.clear();
  Withdraw();
}

QuestionId FunctionEvaluator::Add(const Question& question) {
  questions_.push_back(question);
  return QuestionId(static_cast<std::uint32_t>(questions_.size() - 1));
}

void FunctionEvaluator::Ask(const FilterAsk& ask) {
  queued_asks_ += 1;
  Push(ask.priority,
       {ask.question, {ask.key.begin(), ask.key.end()}, nullptr, nullptr, ask.tag, 0});
}

void FunctionEvaluator::Ask(const JoinAsk& ask) {
  queued_asks_ += ask.subset ? ask.subset->size() : ask.partners->size();
  Push(ask.priority, {ask.question,
                      {ask.anchor_key.begin(), ask.anchor_key.end()},
                      ask.partners,
                      ask.subset,
                      ask.tag,
                      0});
}

void FunctionEvaluator::Push(std::int32_t priority, Pending pending) {
  queue_[priority].push_back(std::move(pending));
}

std::size_t FunctionEvaluator::room() const {
  return queued_asks_ >= kChunkAsks ? 0 : kChunkAsks - queued_asks_;
}

void FunctionEvaluator::Withdraw() {
  queue_.clear();
  queued_asks_ = 0;
}

bool FunctionEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  if (cancel != nullptr && cancel->cancelled()) {
    Withdraw();
    throw Error(ErrorCode::kInterrupted, "interrupted");
  }
  const std::size_t begin = outcomes.size();
  while (!queue_.empty() && outcomes.size() - begin < kChunkAsks) {
    auto& line = queue_.begin()->second;
    if (Answer(line.front(), kChunkAsks - (outcomes.size() - begin), outcomes)) line.pop_front();
    if (line.empty()) queue_.erase(queue_.begin());
  }
  queued_asks_ -= outcomes.size() - begin;
  return outcomes.size() > begin;
}

bool FunctionEvaluator::Answer(Pending& pending, std::size_t n, std::vector<Outcome>& outcomes) {
  const Question& question = questions_[pending.question.value()];
  if (!pending.partners) {
    outcomes.push_back(Decide(question, pending.key));
    outcomes.back().tag = pending.tag;
    return true;
  }
  const std::size_t count = pending.subset ? pending.subset->size() : pending.partners->size();
  const std::size_t end = std::min(count, pending.next + n);
  std::vector<TextId> key(question.width);
  for (; pending.next < end; ++pending.next) {
    const auto index =
        pending.subset ? (*pending.subset)[pending.next] : static_cast<std::uint32_t>(pending.next);
    const auto partner = pending.partners->key(index);
    std::size_t from_anchor = 0;
    std::size_t from_partner = 0;
    for (std::size_t i = 0; i < question.width; ++i) {
      key[i] = question.is_anchor[i] ? pending.key[from_anchor++] : partner[from_partner++];
    }
    outcomes.push_back(Decide(question, key));
    outcomes.back().tag = pending.tag;
    outcomes.back().index = index;
  }
  return pending.next == count;
}

Outcome FunctionEvaluator::Decide(const Question& question, std::span<const TextId> key) const {
  std::vector<std::string_view> arguments;
  arguments.reserve(key.size());
  for (const TextId id : key) arguments.push_back(texts_.text(id));
  PlantedAnswer answer = function_(question.prompt, arguments);
  QUAIL_CHECK(answer.verdict != Verdict::kUndecided);
  return {0, 0, answer.verdict, answer.margin, std::move(answer.reason)};
}

}  // namespace quail::exec
