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
  Push(ask.priority, ask.key, {ask.question, 0, 0, nullptr, nullptr, ask.tag, 0});
}

void FunctionEvaluator::Ask(const JoinAsk& ask) {
  queued_asks_ += ask.subset ? ask.subset->size() : ask.partners->size();
  Push(ask.priority, ask.anchor_key, {ask.question, 0, 0, ask.partners, ask.subset, ask.tag, 0});
}

void FunctionEvaluator::Push(std::int32_t priority, std::span<const TextId> key, Pending pending) {
  Line& line = lines_[priority];
  pending.key_begin = static_cast<std::uint32_t>(line.keys.size());
  pending.key_width = static_cast<std::uint32_t>(key.size());
  line.keys.insert(line.keys.end(), key.begin(), key.end());
  line.asks.push_back(std::move(pending));
}

std::size_t FunctionEvaluator::room() const {
  return queued_asks_ >= kChunkAsks ? 0 : kChunkAsks - queued_asks_;
}

void FunctionEvaluator::Withdraw() {
  lines_.clear();
  queued_asks_ = 0;
}

bool FunctionEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  if (cancel != nullptr && cancel->cancelled()) {
    Withdraw();
    throw Error(ErrorCode::kInterrupted, "interrupted");
  }
  const std::size_t begin = outcomes.size();
  for (auto& [priority, line] : lines_) {
    while (line.next < line.asks.size() && outcomes.size() - begin < kChunkAsks) {
      if (Answer(line, kChunkAsks - (outcomes.size() - begin), outcomes)) ++line.next;
    }
    if (line.next < line.asks.size()) break;
    line.asks.clear();
    line.keys.clear();
    line.next = 0;
  }
  queued_asks_ -= outcomes.size() - begin;
  return outcomes.size() > begin;
}

bool FunctionEvaluator::Answer(Line& line, std::size_t n, std::vector<Outcome>& outcomes) {
  Pending& pending = line.asks[line.next];
  const Question& question = questions_[pending.question.value()];
  const auto own = std::span(line.keys).subspan(pending.key_begin, pending.key_width);
  if (!pending.partners) {
    outcomes.emplace_back().tag = pending.tag;
    Decide(question, own, outcomes.back());
    return true;
  }
  const std::size_t count = pending.subset ? pending.subset->size() : pending.partners->size();
  const std::size_t end = std::min(count, pending.next + n);
  key_.resize(question.width);
  for (; pending.next < end; ++pending.next) {
    const auto index =
        pending.subset ? (*pending.subset)[pending.next] : static_cast<std::uint32_t>(pending.next);
    const auto partner = pending.partners->key(index);
    std::size_t from_anchor = 0;
    std::size_t from_partner = 0;
    for (std::size_t i = 0; i < question.width; ++i) {
      key_[i] = question.is_anchor[i] ? own[from_anchor++] : partner[from_partner++];
    }
    outcomes.emplace_back().tag = pending.tag;
    outcomes.back().index = index;
    Decide(question, key_, outcomes.back());
  }
  return pending.next == count;
}

void FunctionEvaluator::Decide(const Question& question, std::span<const TextId> key,
                               Outcome& outcome) {
  arguments_.clear();
  for (const TextId id : key) arguments_.push_back(texts_.text(id));
  PlantedAnswer answer = function_(question.prompt, arguments_);
  QUAIL_CHECK(answer.verdict != Verdict::kUndecided);
  outcome.verdict = answer.verdict;
  outcome.margin = answer.margin;
  outcome.reason = std::move(answer.reason);
}

}  // namespace quail::exec
