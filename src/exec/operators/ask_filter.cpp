#include "exec/operators/ask_filter.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace quail::exec {
namespace {

/// Bits of a tag's own part: the item, over it the stage.
constexpr unsigned kStageShift = 32;

}  // namespace

AskFilter::AskFilter(const StepContext& context, Domain domain, Options options)
    : StepRun(context), domain_(std::move(domain)), options_(std::move(options)) {
  counters_.kind = options_.is_column ? "column" : "filter";
  counters_.rows_in = domain_.total_weight();
  QUAIL_CHECK_EQ(std::uint64_t{domain_.size()} >> kStageShift, 0U);
  waits_.resize(domain_.size());
  for (const Stage& stage : options_.stages) {
    const std::set<std::size_t> used(stage.columns.begin(), stage.columns.end());
    auto& lines = lines_.emplace_back();
    if (used.size() < domain_.width) lines.emplace(stage.columns.size(), domain_.size());
  }
}

void AskFilter::FillKey(std::size_t item, std::size_t stage, Key& key) const {
  key.clear();
  const auto row = domain_.row(item);
  for (const std::size_t column : options_.stages[stage].columns) key.push_back(row[column]);
}

void AskFilter::Feed() {
  while (next_item_ < domain_.size() && context_.evaluator.room() > 0) Advance(next_item_++, 0);
}

void AskFilter::Advance(std::size_t item, std::size_t stage) {
  for (; stage < options_.stages.size(); ++stage) {
    counters_.asked += domain_.weights[item];
    FillKey(item, stage, key_);
    if (HasNull(key_)) {
      counters_.null_input += domain_.weights[item];
      return Drop(item, stage);
    }
    const Judgement judgement = table(options_.stages[stage]).Find(key_);
    if (judgement.verdict == Verdict::kUndecided) return Wait(item, stage, key_);
    if (!Settle(item, stage, judgement)) return;
  }
  counters_.rows_out += domain_.weights[item];
  if (next_ != nullptr) next_->Admit(domain_.row(item));
}

void AskFilter::Wait(std::size_t item, std::size_t stage, const Key& key) {
  if (!lines_[stage]) {
    waits_[item] = true;
  } else if (!lines_[stage]->Add(key, static_cast<std::uint32_t>(item))) {
    return;
  }
  Submit(item, stage, key);
}

void AskFilter::Submit(std::size_t item, std::size_t stage, const Key& key) {
  ++waiting_;
  const bool goes_on = stage + 1 < options_.stages.size();
  const bool read_again = options_.feeds_later_step || goes_on;
  const double later = LaterChance(key);
  const bool others = context_.others != nullptr && context_.others->FiltersToo(key);
  next_key_.clear();
  if (stage == 0 && item + 1 < domain_.size()) FillKey(item + 1, stage, next_key_);
  context_.evaluator.Ask(FilterAsk{.question = question(options_.stages[stage]),
                                   .key = key,
                                   .next_key = next_key_,
                                   .tag = Tag(item | (std::uint64_t{stage} << kStageShift)),
                                   .priority = Priority(stage),
                                   .step = context_.step,
                                   .among_filters = stage > 0 || goes_on || others,
                                   .expected_reuse = read_again ? 1.0 : later,
                                   .filter_reuse = goes_on ? 1.0 : (others ? later : 0.0)});
}

bool AskFilter::Settle(std::size_t item, std::size_t stage, const Judgement& judgement) {
  const Stage& predicate = options_.stages[stage];
  if (judgement.verdict == Verdict::kError) {
    FillKey(item, stage, key_);
    CountFailure(predicate, key_, domain_.weights[item]);
  }
  const bool survives =
      options_.is_column || predicate.Survives(context_.verdicts.Truth(predicate.call, judgement));
  const bool last = stage + 1 == options_.stages.size();
  if (!survives || (last && !options_.feeds_later_step)) Drop(item, stage);
  return survives;
}

/// Its documents are not read again by this step and those that it feeds.
void AskFilter::Drop(std::size_t item, std::size_t stage) {
  if (!keeps_documents()) return;
  for (std::size_t asked = 0; asked <= stage; ++asked) {
    const bool again = asked > 0 && std::ranges::equal(options_.stages[asked].columns,
                                                       options_.stages[asked - 1].columns);
    if (again) continue;
    FillKey(item, asked, key_);
    if (HasNull(key_)) continue;
    context_.evaluator.Expect(question(options_.stages[asked]), key_, LaterChance(key_));
  }
}

void AskFilter::Take(const Outcome& outcome) {
  const std::uint64_t tag = OwnTag(outcome.tag);
  const std::size_t stage = tag >> kStageShift;
  const std::size_t first = tag & ((std::uint64_t{1} << kStageShift) - 1);
  --waiting_;
  FillKey(first, stage, key_);
  Record(options_.stages[stage], key_, outcome);
  const Judgement judgement{outcome.verdict, outcome.margin, 0};
  if (!lines_[stage]) {
    QUAIL_CHECK(waits_[first]);
    waits_[first] = false;
    if (Settle(first, stage, judgement)) Advance(first, stage + 1);
    return;
  }
  const bool waited = lines_[stage]->Take(key_, [&](std::size_t item) {
    if (Settle(item, stage, judgement)) Advance(item, stage + 1);
  });
  QUAIL_CHECK(waited);
}

void AskFilter::CountUnjudged(std::size_t item) {
  counters_.asked -= domain_.weights[item];
  counters_.unjudged += domain_.weights[item];
}

void AskFilter::Stop() {
  for (std::size_t item = 0; item < next_item_; ++item) {
    if (waits_[item]) CountUnjudged(item);
    waits_[item] = false;
  }
  for (auto& lines : lines_) {
    if (lines) lines->TakeAll([this](std::size_t item) { CountUnjudged(item); });
  }
  waiting_ = 0;
  for (; next_item_ < domain_.size(); ++next_item_) {
    counters_.unjudged += domain_.weights[next_item_];
  }
}

std::uint64_t AskFilter::open_asks() const { return waiting_ + (domain_.size() - next_item_); }

}  // namespace quail::exec
