#include "exec/checkpoint_evaluator.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/check.h"

namespace quail::exec {

CheckpointEvaluator::CheckpointEvaluator(Evaluator& inner, CheckpointFile& file,
                                         const text::TextStore& texts, std::string decider,
                                         std::int64_t longest_prompt)
    : inner_(inner),
      file_(file),
      texts_(texts),
      decider_(std::move(decider)),
      longest_prompt_(longest_prompt) {}

void CheckpointEvaluator::Begin() {
  inner_.Begin();
  questions_.clear();
  open_.clear();
  ready_.clear();
}

QuestionId CheckpointEvaluator::Add(const Question& question) {
  std::string layout;
  for (const bool anchor : question.is_anchor) layout += anchor ? 'a' : 'p';
  const bool cuts = question.on_long != plan::OnLong::kError;
  const std::string identity =
      fmt::format("margin|{}|{}|{}|{}|{}|{}|{}", decider_.size(), decider_, question.width, layout,
                  static_cast<int>(question.on_long), cuts ? longest_prompt_ : 0, question.prompt);
  questions_.push_back({question, base::HashBytes(identity)});
  const QuestionId id = inner_.Add(question);
  QUAIL_CHECK_EQ(id.value() + 1, questions_.size());
  return id;
}

base::Hash128 CheckpointEvaluator::TextHash(TextId id) const {
  if (!texts_.is_token_list(id)) return base::HashBytes(texts_.text(id), 1);
  return base::HashBytes(std::as_bytes(texts_.tokens(id)), 2);
}

base::Hash128 CheckpointEvaluator::KeyOf(const Open& open, std::size_t partner) const {
  const Asked& asked = questions_[open.question.value()];
  std::vector<base::Hash128> parts = {asked.hash};
  if (!open.partners) {
    for (const TextId id : open.key) parts.push_back(TextHash(id));
  } else {
    const auto other = open.partners->key(partner);
    std::size_t from_anchor = 0;
    std::size_t from_partner = 0;
    for (const bool anchor : asked.question.is_anchor) {
      parts.push_back(TextHash(anchor ? open.key[from_anchor++] : other[from_partner++]));
    }
  }
  return base::HashBytes(std::as_bytes(std::span(parts)));
}

bool CheckpointEvaluator::Reuse(const Open& open, std::uint64_t tag, std::uint32_t partner) {
  const auto kept = file_.Find(KeyOf(open, partner));
  if (!kept) return false;
  ready_.push_back({tag, partner, kept->verdict, kept->margin, ""});
  ++reused_;
  return true;
}

void CheckpointEvaluator::Ask(const FilterAsk& ask) {
  Open open{ask.question, {ask.key.begin(), ask.key.end()}, nullptr, 1};
  if (Reuse(open, ask.tag, 0)) return;
  open_[ask.tag] = std::move(open);
  inner_.Ask(ask);
}

void CheckpointEvaluator::Ask(const JoinAsk& ask) {
  Open open{ask.question, {ask.anchor_key.begin(), ask.anchor_key.end()}, ask.partners, 0};
  auto rest = std::make_shared<std::vector<std::uint32_t>>();
  const std::size_t count = ask.subset ? ask.subset->size() : ask.partners->size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t partner = ask.subset ? (*ask.subset)[i] : static_cast<std::uint32_t>(i);
    if (!Reuse(open, ask.tag, partner)) rest->push_back(partner);
  }
  if (rest->empty()) return;
  open.left = rest->size();
  JoinAsk asked = ask;
  if (rest->size() < count) asked.subset = rest;
  open_[ask.tag] = std::move(open);
  inner_.Ask(asked);
}

bool CheckpointEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  if (!ready_.empty()) {
    std::move(ready_.begin(), ready_.end(), std::back_inserter(outcomes));
    ready_.clear();
    return true;
  }
  const std::size_t begin = outcomes.size();
  if (!inner_.Next(outcomes, cancel)) return false;
  for (std::size_t i = begin; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const auto found = open_.find(outcome.tag);
    QUAIL_CHECK(found != open_.end());
    if (outcome.verdict != Verdict::kError) {
      file_.Keep(KeyOf(found->second, outcome.index), {outcome.verdict, outcome.margin});
    }
    if (--found->second.left == 0) open_.erase(found);
  }
  file_.Flush();
  return true;
}

void CheckpointEvaluator::Withdraw() {
  inner_.Withdraw();
  open_.clear();
  ready_.clear();
}

}  // namespace quail::exec
