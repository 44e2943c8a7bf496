#include "exec/operators/ask_join.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace quail::exec {
namespace {

bool CoversAll(const std::vector<std::size_t>& columns, std::size_t width) {
  std::set<std::size_t> used(columns.begin(), columns.end());
  return used.size() == width;
}

}  // namespace

PairDomain PairDomain::Cross(Domain anchors, Domain partners) {
  return {std::move(anchors), std::move(partners), std::nullopt};
}

PairDomain PairDomain::Sparse(const Domain& pairs, std::size_t anchor_width) {
  PairDomain domain;
  domain.anchors.width = anchor_width;
  domain.partners.width = pairs.width - anchor_width;
  domain.partners_of.emplace();
  TupleIndex anchors(domain.anchors.width);
  TupleIndex partners(domain.partners.width);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::uint32_t anchor = anchors.Add(pairs.row(i).first(anchor_width));
    const std::uint32_t partner = partners.Add(pairs.row(i).subspan(anchor_width));
    if (anchor == domain.partners_of->size()) domain.partners_of->emplace_back();
    (*domain.partners_of)[anchor].push_back({partner, pairs.weights[i]});
  }
  for (auto& list : *domain.partners_of) std::ranges::sort(list, {}, &Partner::index);
  domain.anchors.weights.assign(anchors.size(), 1);
  domain.anchors.ids = anchors.TakeIds();
  domain.partners.weights.assign(partners.size(), 1);
  domain.partners.ids = partners.TakeIds();
  return domain;
}

std::uint64_t PairDomain::total_weight() const {
  if (!partners_of) return anchors.total_weight() * partners.total_weight();
  std::uint64_t total = 0;
  for (const auto& list : *partners_of) {
    for (const Partner& partner : list) total += partner.weight;
  }
  return total;
}

std::uint64_t PairDomain::pairs() const {
  if (!partners_of) return std::uint64_t{anchors.size()} * partners.size();
  std::uint64_t total = 0;
  for (const auto& list : *partners_of) total += list.size();
  return total;
}

AskJoin::AskJoin(const StepContext& context, PairDomain domain, Options options)
    : StepRun(context), domain_(std::move(domain)), options_(std::move(options)) {
  QUAIL_CHECK(!options_.is_column || options_.stages.size() == 1);
  counters_.kind = options_.is_column ? "column" : "join";
  anchors_.resize(domain_.anchors.size());
  open_asks_ = domain_.pairs();
  QueueAnchors();
  for (std::size_t i = 0; i < options_.stages.size(); ++i) {
    stages_.push_back(MakeStage(options_.stages[i]));
    stage_by_stage_ |= stages_.back().repeats;
    ReserveVerdicts(i);
  }
}

void AskJoin::QueueAnchors() {
  const auto count = static_cast<std::uint32_t>(anchors_.size());
  if (!options_.admitted_by) {
    admitted_.resize(count);
    std::iota(admitted_.begin(), admitted_.end(), 0U);
    counters_.rows_in = domain_.total_weight();
    return;
  }
  QUAIL_CHECK(!domain_.partners_of);
  partner_weight_ = domain_.partners.total_weight();
  outside_.emplace(options_.admitted_by->size(), count);
  std::vector<TextId> tuple;
  for (std::uint32_t anchor = 0; anchor < count; ++anchor) {
    tuple.clear();
    for (const std::size_t column : *options_.admitted_by) {
      tuple.push_back(domain_.anchors.row(anchor)[column]);
    }
    outside_->Add(tuple, anchor);
  }
}

void AskJoin::Admit(std::span<const TextId> tuple) {
  const bool found = outside_ && outside_->Take(tuple, [&](std::uint32_t anchor) {
    admitted_.push_back(anchor);
    counters_.rows_in += domain_.anchors.weights[anchor] * partner_weight_;
  });
  QUAIL_CHECK_MSG(found, "a tuple that belongs to no anchor, or is admitted twice");
}

void AskJoin::Close() {
  if (!outside_) return;
  open_asks_ -= std::min<std::uint64_t>(open_asks_, outside_->size() * domain_.partners.size());
  outside_.reset();
}

AskJoin::StageState AskJoin::MakeStage(const Stage& stage) const {
  StageState state;
  const std::size_t anchor_width = domain_.anchors.width;
  for (const std::size_t column : stage.columns) {
    state.is_anchor.push_back(column < anchor_width);
    if (column < anchor_width) {
      state.from_anchor.push_back(column);
    } else {
      state.from_partner.push_back(column - anchor_width);
    }
  }
  const Question& question = context_.verdicts.question(context_.verdicts.question_of(stage.call));
  QUAIL_CHECK_MSG(question.is_anchor == state.is_anchor, "a join's layout and its domain differ");
  state.repeats = !CoversAll(state.from_anchor, anchor_width) ||
                  !CoversAll(state.from_partner, domain_.partners.width);
  state.asked = TupleIndex(stage.columns.size());
  state.list = std::make_shared<PartnerList>();
  state.list->width = state.from_partner.size();
  for (std::size_t p = 0; p < domain_.partners.size(); ++p) {
    for (const std::size_t column : state.from_partner) {
      state.list->keys.push_back(domain_.partners.row(p)[column]);
    }
    if (!HasNull(state.list->key(p))) state.usable.push_back(static_cast<std::uint32_t>(p));
  }
  return state;
}

void AskJoin::ReserveVerdicts(std::size_t stage) {
  const StageState& state = stages_[stage];
  if (domain_.partners_of || state.repeats || state.is_anchor.size() != 2) return;
  if (domain_.anchors.width != 1 || domain_.partners.width != 1) return;
  std::vector<TextId> anchors;
  std::vector<TextId> partners;
  for (const TextId id : domain_.anchors.ids) {
    if (id != kNullText) anchors.push_back(id);
  }
  for (const TextId id : domain_.partners.ids) {
    if (id != kNullText) partners.push_back(id);
  }
  VerdictTable& verdicts = table(options_.stages[stage]);
  state.is_anchor[0] ? verdicts.AddMatrix(anchors, partners)
                     : verdicts.AddMatrix(partners, anchors);
}

void AskJoin::FillKey(std::size_t stage, std::size_t anchor, std::size_t partner,
                      std::vector<TextId>& key) const {
  const std::size_t anchor_width = domain_.anchors.width;
  key.clear();
  for (const std::size_t column : options_.stages[stage].columns) {
    key.push_back(column < anchor_width ? domain_.anchors.row(anchor)[column]
                                        : domain_.partners.row(partner)[column - anchor_width]);
  }
}

std::vector<TextId> AskJoin::AnchorKey(std::size_t stage, std::size_t anchor) const {
  std::vector<TextId> key;
  for (const std::size_t column : stages_[stage].from_anchor) {
    key.push_back(domain_.anchors.row(anchor)[column]);
  }
  return key;
}

std::uint64_t AskJoin::Weight(std::size_t anchor, std::size_t partner) const {
  if (!domain_.partners_of) {
    return domain_.anchors.weights[anchor] * domain_.partners.weights[partner];
  }
  const auto& list = (*domain_.partners_of)[anchor];
  const auto found = std::ranges::lower_bound(list, partner, {}, &PairDomain::Partner::index);
  QUAIL_CHECK(found != list.end() && found->index == partner);
  return found->weight;
}

std::vector<std::uint32_t> AskJoin::Alive(std::size_t anchor) const {
  if (anchors_[anchor].alive) return *anchors_[anchor].alive;
  std::vector<std::uint32_t> alive;
  if (domain_.partners_of) {
    for (const auto& partner : (*domain_.partners_of)[anchor]) alive.push_back(partner.index);
  } else {
    alive.resize(domain_.partners.size());
    std::iota(alive.begin(), alive.end(), 0U);
  }
  return alive;
}

void AskJoin::Feed() {
  while (context_.evaluator.room() > 0) {
    if (next_admitted_ < admitted_.size()) {
      BeginStage(admitted_[next_admitted_++]);
    } else if (stage_by_stage_ && !any_outside() && waiting_ == 0 &&
               common_stage_ < stages_.size()) {
      NextStageOfAll();
    } else {
      return;
    }
  }
}

void AskJoin::NextStageOfAll() {
  for (std::size_t anchor = 0; anchor < anchors_.size(); ++anchor) EndStage(anchor);
  if (++common_stage_ < stages_.size()) next_admitted_ = 0;
}

AskJoin::Indices AskJoin::ToAsk(std::size_t anchor, std::span<const std::uint32_t> alive,
                                bool all) {
  const std::size_t stage = anchors_[anchor].stage;
  StageState& state = stages_[stage];
  const VerdictTable& verdicts = table(options_.stages[stage]);
  const bool last = stage + 1 == stages_.size();
  const bool fresh =
      all && !state.repeats && verdicts.decided() == 0 && state.usable.size() == state.list->size();
  if (fresh) return nullptr;
  auto ask = std::make_shared<std::vector<std::uint32_t>>();
  std::vector<TextId> key;
  for (const std::uint32_t partner : alive) {
    if (HasNull(state.list->key(partner))) {
      counters_.null_input += Weight(anchor, partner);
      continue;
    }
    FillKey(stage, anchor, partner, key);
    const Judgement judgement = verdicts.Find(key);
    if (judgement.verdict == Verdict::kUndecided) {
      const std::size_t known = state.asked.size();
      if (!state.repeats || state.asked.Add(key) == known) ask->push_back(partner);
    } else if (last && options_.stages[stage].Survives(
                           context_.verdicts.Truth(options_.stages[stage].call, judgement))) {
      passed_ += Weight(anchor, partner);
    }
  }
  return ask;
}

void AskJoin::BeginStage(std::size_t index) {
  Anchor& anchor = anchors_[index];
  const StageState& state = stages_[anchor.stage];
  const bool all = !anchor.alive && !domain_.partners_of;
  anchor.begun = true;
  const std::vector<std::uint32_t> alive = Alive(index);
  std::uint64_t weight = 0;
  for (const std::uint32_t partner : alive) weight += Weight(index, partner);
  counters_.asked += weight;

  const std::vector<TextId> anchor_key = AnchorKey(anchor.stage, index);
  if (HasNull(anchor_key)) {
    counters_.null_input += weight;
    anchor.alive = std::make_shared<const std::vector<std::uint32_t>>();
  } else if (!alive.empty()) {
    const Indices ask = ToAsk(index, alive, all);
    anchor.waiting = ask ? ask->size() : state.list->size();
    waiting_ += anchor.waiting;
    if (anchor.waiting > 0) {
      const bool read_again = anchor.stage + 1 < stages_.size() || next_ != nullptr;
      context_.evaluator.Ask(JoinAsk{question(options_.stages[anchor.stage]), anchor_key,
                                     state.list, ask, Tag(index), Priority(anchor.stage),
                                     context_.step, read_again,
                                     read_again ? 1.0 : LaterChance(anchor_key)});
    }
  }
  if (anchor.waiting == 0 && !stage_by_stage_) EndStage(index);
}

void AskJoin::Take(const Outcome& outcome) {
  const std::size_t index = OwnTag(outcome.tag);
  Anchor& anchor = anchors_[index];
  const Stage& stage = options_.stages[anchor.stage];
  std::vector<TextId>& key = key_;
  FillKey(anchor.stage, index, outcome.index, key);
  Record(stage, key, outcome);
  const Judgement judgement{outcome.verdict, outcome.margin, 0};
  if (anchor.stage + 1 == stages_.size() &&
      stage.Survives(context_.verdicts.Truth(stage.call, judgement))) {
    passed_ += Weight(index, outcome.index);
  }
  QUAIL_CHECK(anchor.waiting > 0 && waiting_ > 0);
  --anchor.waiting;
  --waiting_;
  if (open_asks_ > 0) --open_asks_;
  if (anchor.waiting == 0 && !stage_by_stage_) EndStage(index);
}

void AskJoin::EndStage(std::size_t index) {
  Anchor& anchor = anchors_[index];
  if (!anchor.begun) return;
  anchor.begun = false;
  const Stage& stage = options_.stages[anchor.stage];
  const bool last = anchor.stage + 1 == stages_.size();
  auto survivors = std::make_shared<std::vector<std::uint32_t>>();
  std::vector<TextId> key;
  for (const std::uint32_t partner : Alive(index)) {
    FillKey(anchor.stage, index, partner, key);
    if (HasNull(key)) continue;
    const Judgement judgement = table(stage).Find(key);
    if (judgement.verdict == Verdict::kError) {
      CountFailure(stage, key, Weight(index, partner));
    }
    if (!options_.is_column && !stage.Survives(context_.verdicts.Truth(stage.call, judgement))) {
      continue;
    }
    if (last) counters_.rows_out += Weight(index, partner);
    survivors->push_back(partner);
  }
  const bool goes_on = !survivors->empty() && (!last || next_ != nullptr);
  const bool expected = anchor.stage > 0 || options_.admitted_by || next_ != nullptr;
  if (!goes_on && expected) {
    const std::vector<TextId> anchor_key = AnchorKey(anchor.stage, index);
    if (!HasNull(anchor_key)) {
      context_.evaluator.Expect(question(stage), anchor_key, LaterChance(anchor_key));
    }
  }
  if (last) {
    if (goes_on) next_->Admit(domain_.anchors.row(index));
    return;
  }
  anchor.alive = std::move(survivors);
  ++anchor.stage;
  if (goes_on && !stage_by_stage_) BeginStage(index);
}

void AskJoin::Stop() {
  for (std::size_t place = 0; place < admitted_.size(); ++place) {
    const std::uint32_t index = admitted_[place];
    const Anchor& anchor = anchors_[index];
    const bool untouched = !anchor.begun && place >= next_admitted_;
    if (!anchor.begun && !untouched) continue;
    for (const std::uint32_t partner : Alive(index)) {
      FillKey(anchor.stage, index, partner, key_);
      const bool undecided =
          !HasNull(key_) &&
          table(options_.stages[anchor.stage]).Find(key_).verdict == Verdict::kUndecided;
      if (!undecided && !untouched) continue;
      counters_.unjudged += Weight(index, partner);
      if (!untouched) counters_.asked -= Weight(index, partner);
    }
    if (!untouched && anchor.stage + 1 == stages_.size()) EndStage(index);
  }
  next_admitted_ = admitted_.size();
  outside_.reset();
  common_stage_ = stages_.size();
  waiting_ = 0;
  open_asks_ = 0;
}

}  // namespace quail::exec
