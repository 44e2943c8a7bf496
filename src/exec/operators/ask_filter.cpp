#include "exec/operators/ask_filter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace quail::exec {
namespace {

constexpr unsigned kStageShift = 48;

}  // namespace

AskFilter::AskFilter(const StepContext& context, Domain domain, Options options)
    : StepRun(context), domain_(std::move(domain)), options_(std::move(options)) {
  counters_.kind = options_.is_column ? "column" : "filter";
  counters_.rows_in = domain_.total_weight();
}

std::vector<TextId> AskFilter::Key(std::size_t item, std::size_t stage) const {
  std::vector<TextId> key;
  for (const std::size_t column : options_.stages[stage].columns) {
    key.push_back(domain_.row(item)[column]);
  }
  return key;
}

void AskFilter::Feed() {
  while (next_item_ < domain_.size() && context_.evaluator.room() > 0) Advance(next_item_++, 0);
}

void AskFilter::Advance(std::size_t item, std::size_t stage) {
  for (; stage < options_.stages.size(); ++stage) {
    counters_.asked += domain_.weights[item];
    std::vector<TextId> key = Key(item, stage);
    if (std::ranges::find(key, kNullText) != key.end()) {
      counters_.null_input += domain_.weights[item];
      return Drop(item, stage);
    }
    const Judgement judgement = table(options_.stages[stage]).Find(key);
    if (judgement.verdict == Verdict::kUndecided) {
      auto& line = waiting_[{stage, std::move(key)}];
      line.push_back(item);
      if (line.size() == 1) Submit(item, stage);
      return;
    }
    if (!Settle(item, stage, judgement)) return;
  }
  counters_.rows_out += domain_.weights[item];
}

void AskFilter::Submit(std::size_t item, std::size_t stage) {
  const std::vector<TextId> key = Key(item, stage);
  const bool read_again = options_.feeds_later_step || stage + 1 < options_.stages.size();
  context_.evaluator.Ask(
      FilterAsk{question(options_.stages[stage]), key, item | (std::uint64_t{stage} << kStageShift),
                static_cast<std::int32_t>(stage), context_.step, read_again ? 1.0 : 0.0});
}

bool AskFilter::Settle(std::size_t item, std::size_t stage, const Judgement& judgement) {
  const Stage& predicate = options_.stages[stage];
  if (judgement.verdict == Verdict::kError) {
    CountFailure(predicate, Key(item, stage), domain_.weights[item]);
  }
  if (options_.is_column ||
      predicate.Survives(context_.verdicts.Truth(predicate.call, judgement))) {
    const bool last = stage + 1 == options_.stages.size();
    if (last && !options_.feeds_later_step && stage > 0) {
      context_.evaluator.Expect(question(predicate), Key(item, stage), 0);
    }
    return true;
  }
  Drop(item, stage);
  return false;
}

void AskFilter::Drop(std::size_t item, std::size_t stage) {
  if (stage == 0 && options_.stages.size() == 1 && !options_.feeds_later_step) return;
  for (std::size_t asked = 0; asked <= stage; ++asked) {
    const std::vector<TextId> key = Key(item, asked);
    if (std::ranges::find(key, kNullText) != key.end()) continue;
    context_.evaluator.Expect(question(options_.stages[asked]), key, 0);
  }
}

void AskFilter::Take(const Outcome& outcome) {
  const std::size_t stage = outcome.tag >> kStageShift;
  const std::size_t first = outcome.tag & ((std::uint64_t{1} << kStageShift) - 1);
  const auto found = waiting_.find({stage, Key(first, stage)});
  QUAIL_CHECK(found != waiting_.end());
  const std::vector<std::size_t> items = std::move(found->second);
  const std::vector<TextId> key = found->first.second;
  waiting_.erase(found);
  Record(options_.stages[stage], key, outcome);
  const Judgement judgement = table(options_.stages[stage]).Find(key);
  for (const std::size_t item : items) {
    if (Settle(item, stage, judgement)) Advance(item, stage + 1);
  }
}

void AskFilter::Stop() {
  for (const auto& [place, items] : waiting_) {
    for (const std::size_t item : items) {
      counters_.asked -= domain_.weights[item];
      counters_.unjudged += domain_.weights[item];
    }
  }
  waiting_.clear();
  for (; next_item_ < domain_.size(); ++next_item_) {
    counters_.unjudged += domain_.weights[next_item_];
  }
}

std::uint64_t AskFilter::open_asks() const {
  return waiting_.size() + (domain_.size() - next_item_);
}

}  // namespace quail::exec
