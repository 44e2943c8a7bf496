#include "exec/model_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "exec/model_evaluator_parts.h"
#include "quail/error.h"

namespace quail::exec {
namespace {

/// Sources that the forest may hold, so that it can look far ahead without a record of every row.
constexpr std::size_t kOpenSources = 8192;

/// Least common beginning of filter questions that is kept with a document, in tokens. It costs a
/// run and a span more, about a token each (infer/packer), and pays when a second question is
/// asked, which is assumed for at least one document in five.
constexpr std::size_t kLeastHead = 10;

/// Marks the evaluator when a call ends in an error: what it and the forest then know of each other
/// is not trusted.
class MarkOnThrow {
 public:
  explicit MarkOnThrow(bool& failed) : failed_(failed) {}
  ~MarkOnThrow() {
    if (std::uncaught_exceptions() > depth_) failed_ = true;
  }
  MarkOnThrow(const MarkOnThrow&) = delete;
  MarkOnThrow& operator=(const MarkOnThrow&) = delete;

 private:
  bool& failed_;
  int depth_ = std::uncaught_exceptions();
};

}  // namespace

ModelEvaluator::ModelEvaluator(const ModelParts& parts) : parts_(parts) {}
ModelEvaluator::~ModelEvaluator() = default;

void ModelEvaluator::Begin() {
  Withdraw();
  if (failed_) {
    parts_.forest.Clear();
    ForestCleared();
    failed_ = false;
  }
  questions_.clear();
  kept_frames_.clear();
  filter_questions_ = 0;
  head_ = {};
  cut_asks_.clear();
  margins_ = 0;
  margins_vary_ = false;
  if (parts_.asked != nullptr) *parts_.asked = AskedPaths();
  parts_.forest.ResetCounters();
}

void ModelEvaluator::Tokenize(std::vector<text::PromptPiece>& pieces) {
  for (text::PromptPiece& piece : pieces) {
    if (piece.argument < 0 && piece.tokens.empty()) piece.tokens = Encoded(piece.literal);
  }
}

void ModelEvaluator::ForestCleared() {
  segments_.clear();
  kept_frames_.clear();
}

const ModelEvaluator::Tokens& ModelEvaluator::Encoded(const std::string& text) {
  const auto known = literals_.find(text);
  if (known != literals_.end()) return known->second;
  Tokens tokens;
  if (const auto bad = parts_.tokenizer->Encode(text, tokens)) {
    throw Error(ErrorCode::kQuery,
                fmt::format("the prompt is not valid UTF-8 at byte {} of a piece", *bad));
  }
  return literals_.emplace(text, std::move(tokens)).first->second;
}

std::span<const base::TokenId> ModelEvaluator::FilterLeaf(const text::FilterPrompt& prompt) {
  Tokens leaf;
  for (const text::PromptPiece& piece : prompt.question) {
    QUAIL_CHECK_MSG(piece.argument < 0, "a filter's question repeats its document");
    leaf.insert(leaf.end(), piece.tokens.begin(), piece.tokens.end());
  }
  return *filter_leaves_.insert(std::move(leaf)).first;
}

QuestionId ModelEvaluator::Add(const Question& question) {
  auto prepared = std::make_unique<Prepared>();
  prepared->question = question;
  const TokenPrompts::Pieces* pieces =
      parts_.token_prompts == nullptr ? nullptr : parts_.token_prompts->Find(question.prompt);
  QUAIL_CHECK_MSG(pieces != nullptr || parts_.tokenizer != nullptr,
                  "a text prompt for a model without a tokenizer");
  const text::ChatPieces* chat = pieces == nullptr ? parts_.chat : nullptr;
  const auto prompt = text::PromptTemplate::Parse(question.prompt);
  if (question.is_anchor.empty()) {
    prepared->filter =
        pieces == nullptr ? text::LayOutFilter(prompt, parts_.words) : LayOutFilter(*pieces);
    if (chat != nullptr) text::PutTurnsAround(*chat, prepared->filter);
    Tokenize(prepared->filter.document);
    Tokenize(prepared->filter.question);
    prepared->filter_leaf = FilterLeaf(prepared->filter);
    NoteHead(prepared->filter_leaf);
  } else {
    prepared->join = pieces == nullptr ? text::LayOutJoin(prompt, question.is_anchor, parts_.words)
                                       : LayOutJoin(*pieces, question.is_anchor);
    if (chat != nullptr) text::PutTurnsAround(*chat, prepared->join);
    for (auto* part : {&prepared->join.anchor, &prepared->join.kept, &prepared->join.partner}) {
      Tokenize(*part);
    }
  }
  questions_.push_back(std::move(prepared));
  return QuestionId(static_cast<std::uint32_t>(questions_.size() - 1));
}

/// Keeps the beginning that all filter questions of the statement have in common.
void ModelEvaluator::NoteHead(std::span<const base::TokenId> question) {
  ++filter_questions_;
  if (filter_questions_ == 1) {
    head_ = question.first(question.empty() ? 0 : question.size() - 1);
    return;
  }
  std::size_t common = 0;
  while (common < head_.size() && common + 1 < question.size() &&
         head_[common] == question[common]) {
    ++common;
  }
  head_ = head_.first(common);
}

bool ModelEvaluator::KeepsHead(const FilterAsk& ask) const {
  return filter_questions_ > 1 && head_.size() >= kLeastHead && ask.among_filters;
}

std::string ModelEvaluator::Fault(TextId id) {
  if (HasSegment(id)) return "";
  if (parts_.texts.is_token_list(id)) return FaultOfTokens(id);
  if (parts_.texts.status(id) == text::TextStatus::kPending) {
    QUAIL_CHECK_MSG(parts_.tokenizer != nullptr, "a text for a model without a tokenizer");
    parts_.texts.Tokenize(std::span(&id, 1), *parts_.tokenizer, parts_.pool);
  }
  if (parts_.texts.status(id) == text::TextStatus::kInvalidUtf8) {
    return fmt::format("invalid UTF-8 at byte {}", parts_.texts.bad_offset(id));
  }
  return "";
}

std::string ModelEvaluator::FaultOfTokens(TextId id) const {
  const auto vocabulary = static_cast<std::uint32_t>(parts_.vocabulary);
  const auto tokens = parts_.texts.tokens(id);
  // Without a branch or a copy, so that an instruction sees several: the sign of one that is
  // negative, or of what is left up to the last.
  std::uint32_t signs = 0;
  for (const base::TokenId& token : tokens) {
    const auto bits = static_cast<std::uint32_t>(token.value());
    signs |= bits | (vocabulary - 1 - bits);
  }
  if (signs >> 31 == 0) return "";
  for (const base::TokenId token : tokens) {
    if (static_cast<std::uint32_t>(token.value()) < vocabulary) continue;
    return fmt::format("token id {} is outside of the model's vocabulary of {}", token.value(),
                       parts_.vocabulary);
  }
  return "";
}

std::string ModelEvaluator::Fault(std::span<const TextId> key) {
  for (const TextId id : key) {
    std::string fault = Fault(id);
    if (!fault.empty()) return fault;
  }
  return "";
}

infer::SegmentId ModelEvaluator::SegmentOf(TextId text) {
  if (text.value() >= segments_.size()) segments_.resize(text.value() + std::size_t{1}, kNoSegment);
  std::uint32_t& known = segments_[text.value()];
  if (known == kNoSegment) known = parts_.forest.Segment(parts_.texts.tokens(text)).value();
  return infer::SegmentId(known);
}

infer::NodeId ModelEvaluator::Walk(infer::NodeId node, std::span<const text::PromptPiece> pieces,
                                   std::span<const TextId> arguments) {
  for (const text::PromptPiece& piece : pieces) {
    const infer::SegmentId segment =
        piece.argument < 0 ? parts_.forest.Segment(piece.tokens)
                           : SegmentOf(arguments[static_cast<std::size_t>(piece.argument)]);
    node = parts_.forest.Child(node, segment);
  }
  return node;
}

void ModelEvaluator::Note(std::span<const text::PromptPiece> stem,
                          std::span<const TextId> arguments,
                          std::span<const std::span<const base::TokenId>> leaves) {
  std::vector<std::span<const base::TokenId>> pieces;
  for (const text::PromptPiece& piece : stem) {
    pieces.push_back(piece.argument < 0 ? piece.tokens
                                        : parts_.texts.tokens(
                                              arguments[static_cast<std::size_t>(piece.argument)]));
  }
  const AskedPaths::Stem noted = parts_.asked->AddStem(std::move(pieces));
  for (const auto& leaf : leaves) parts_.asked->Add(noted, leaf);
}

void ModelEvaluator::Ask(const FilterAsk& ask) {
  const MarkOnThrow mark(failed_);
  const Prepared& prepared = *questions_[ask.question.value()];
  for (const TextId id : ask.next_key) {
    if (id != kNullText) parts_.texts.Prefetch(id);
  }
  if (std::string fault = Fault(ask.key); !fault.empty()) {
    ready_.push_back({ask.tag, 0, Verdict::kError, 0, std::move(fault)});
    return;
  }
  if (AskCut(prepared, ask)) return;
  infer::NodeId node = Walk(parts_.forest.root(), prepared.filter.document, ask.key);
  if (ask.expected_reuse > 0 && node != parts_.forest.root()) {
    parts_.forest.Expect(node, ask.expected_reuse);
  }
  std::span<const base::TokenId> leaf = prepared.filter_leaf;
  if (KeepsHead(ask)) {
    node = parts_.forest.Child(node, parts_.forest.Segment(head_));
    parts_.forest.Expect(node, ask.filter_reuse);
    leaf = leaf.subspan(head_.size());
  }
  const infer::SourceOptions options{.priority = ask.priority, .group = {}, .step = ask.step};
  const auto source = parts_.forest.Add(node, std::make_unique<OneLeaf>(leaf), options);
  open_.Add(source, ask.tag, 1);
  if (parts_.asked != nullptr) {
    Note(prepared.filter.document, ask.key, std::span(&prepared.filter_leaf, 1));
  }
}

std::vector<TextId> ModelEvaluator::Spread(const Question& question,
                                           std::span<const TextId> anchor_key) {
  std::vector<TextId> arguments(question.width, kNullText);
  std::size_t next = 0;
  for (std::size_t i = 0; i < question.width; ++i) {
    if (question.is_anchor[i]) arguments[i] = anchor_key[next++];
  }
  return arguments;
}

std::shared_ptr<const ModelEvaluator::LeafTokens> ModelEvaluator::LeavesOf(
    Prepared& prepared, const std::shared_ptr<const PartnerList>& partners) {
  if (prepared.list == partners) return prepared.leaves;
  auto leaves = std::make_shared<LeafTokens>();
  std::vector<std::size_t> place(prepared.question.width, 0);  // argument -> column of the partner
  std::size_t columns = 0;
  for (std::size_t i = 0; i < prepared.question.width; ++i) {
    if (!prepared.question.is_anchor[i]) place[i] = columns++;
  }
  for (std::size_t p = 0; p < partners->size(); ++p) {
    const auto key = partners->key(p);
    const bool null = HasNull(key);
    leaves->faults.push_back(null ? "" : Fault(key));
    leaves->any_fault |= !leaves->faults.back().empty();
    if (!null && leaves->faults.back().empty()) {
      for (const text::PromptPiece& piece : prepared.join.partner) {
        const auto tokens =
            piece.argument < 0
                ? piece.tokens
                : parts_.texts.tokens(key[place[static_cast<std::size_t>(piece.argument)]]);
        leaves->tokens.insert(leaves->tokens.end(), tokens.begin(), tokens.end());
      }
    }
    leaves->begins.push_back(leaves->tokens.size());
    leaves->longest = std::max(leaves->longest, leaves->leaf(p).size());
  }
  prepared.list = partners;
  prepared.leaves = leaves;
  if (parts_.asked != nullptr) parts_.asked->Hold(leaves);
  return leaves;
}

void ModelEvaluator::NoteJoin(const Prepared& prepared, std::span<const TextId> arguments,
                              std::span<const std::uint32_t> subset) {
  std::vector<text::PromptPiece> stem = prepared.join.anchor;
  stem.insert(stem.end(), prepared.join.kept.begin(), prepared.join.kept.end());
  std::vector<std::span<const base::TokenId>> leaves;
  for (std::size_t i = 0; i < (subset.empty() ? prepared.list->size() : subset.size()); ++i) {
    leaves.push_back(prepared.leaves->leaf(subset.empty() ? i : subset[i]));
  }
  Note(stem, arguments, leaves);
}

void ModelEvaluator::Ask(const JoinAsk& ask) {
  const MarkOnThrow mark(failed_);
  Prepared& prepared = *questions_[ask.question.value()];
  const auto leaves = LeavesOf(prepared, ask.partners);
  std::vector<std::uint32_t> subset;
  if (ask.subset) subset = *ask.subset;
  const std::string anchor_fault = Fault(ask.anchor_key);
  if (!anchor_fault.empty() || leaves->any_fault) {
    if (!ask.subset) {
      for (std::uint32_t i = 0; i < ask.partners->size(); ++i) subset.push_back(i);
    }
    std::erase_if(subset, [&](std::uint32_t partner) {
      const std::string& fault = anchor_fault.empty() ? leaves->faults[partner] : anchor_fault;
      if (fault.empty()) return false;
      ready_.push_back({ask.tag, partner, Verdict::kError, 0, fault});
      return true;
    });
    if (subset.empty()) return;
  }
  if (!AskCut(prepared, ask, subset)) return;
  const std::size_t count = subset.empty() ? ask.partners->size() : subset.size();
  const auto arguments = Spread(prepared.question, ask.anchor_key);
  const infer::NodeId document = Walk(parts_.forest.root(), prepared.join.anchor, arguments);
  parts_.forest.Expect(document, ask.expected_reuse);
  const infer::NodeId node = Walk(document, prepared.join.kept, arguments);
  if (parts_.asked != nullptr) NoteJoin(prepared, arguments, subset);
  const infer::SourceOptions options{.priority = ask.priority, .group = {}, .step = ask.step};
  const auto source =
      parts_.forest.Add(node, std::make_unique<PartnerLeaves>(leaves, std::move(subset)), options);
  open_.Add(source, ask.tag, count);
  ForgetFrame(document);
  if (ask.goes_on && node != document) {
    parts_.forest.Expect(node, ask.expected_reuse);
    kept_frames_[document] = node;
  }
}

void ModelEvaluator::ForgetFrame(infer::NodeId document) {
  const auto kept = kept_frames_.extract(document);
  if (!kept.empty()) parts_.forest.Expect(kept.mapped(), 0);
}

void ModelEvaluator::Expect(QuestionId question, std::span<const TextId> document_key, double p) {
  const MarkOnThrow mark(failed_);
  const Prepared& prepared = *questions_[question.value()];
  if (!Fault(document_key).empty()) return;
  const bool filter = prepared.question.is_anchor.empty();
  const infer::NodeId node =
      filter ? Walk(parts_.forest.root(), prepared.filter.document, document_key)
             : Walk(parts_.forest.root(), prepared.join.anchor,
                    Spread(prepared.question, document_key));
  if (node == parts_.forest.root()) return;
  parts_.forest.Expect(node, p);
  ForgetFrame(node);
  if (filter && p == 0 && filter_questions_ > 1 && head_.size() >= kLeastHead) {
    parts_.forest.Expect(parts_.forest.Child(node, parts_.forest.Segment(head_)), 0);
  }
}

std::size_t ModelEvaluator::room() const {
  return open_.size() >= kOpenSources ? 0 : kOpenSources - open_.size();
}

Outcome ModelEvaluator::ToOutcome(const infer::Answer& answer, std::uint64_t tag) {
  Outcome outcome;
  outcome.tag = tag;
  outcome.index = static_cast<std::uint32_t>(answer.index);
  switch (answer.state) {
    case infer::AnswerState::kValue:
      outcome.verdict = answer.value > 0 ? Verdict::kTrue : Verdict::kFalse;
      outcome.margin = answer.value * parts_.margin_scale;
      if (margins_++ == 0) first_margin_ = answer.value;
      margins_vary_ |= answer.value != first_margin_;
      break;
    case infer::AnswerState::kNonFinite:
      outcome.verdict = Verdict::kError;
      outcome.reason = "non-finite logits";
      break;
    case infer::AnswerState::kTooLong:
      outcome.verdict = Verdict::kError;
      outcome.reason = fmt::format("too long: the prompt has {} tokens, at most {} fit",
                                   answer.path_tokens, parts_.forest.config().LongestPrompt());
      break;
  }
  return outcome;
}

bool ModelEvaluator::Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) {
  if (cancel != nullptr && cancel->cancelled()) {
    Withdraw();
    throw Error(ErrorCode::kInterrupted, "interrupted");
  }
  if (!ready_.empty()) {
    std::ranges::move(ready_, std::back_inserter(outcomes));
    ready_.clear();
    return true;
  }
  const std::size_t begin = outcomes.size();
  const MarkOnThrow mark(failed_);
  // Answers to withdrawn sources may come alone: they are no outcome.
  while (outcomes.size() == begin) {
    answers_.clear();
    if (!parts_.forest.Next(answers_, cancel)) return false;
    for (const infer::Answer& answer : answers_) {
      const auto tag = open_.Answered(answer.source);
      if (tag) outcomes.push_back(ToOutcome(answer, *tag));
    }
  }
  return true;
}

void ModelEvaluator::Withdraw() {
  const MarkOnThrow mark(failed_);
  if (!failed_) {
    for (const OpenSources::Open& open : open_.all()) parts_.forest.Withdraw(open.source);
  }
  open_.clear();
  ready_.clear();
}

TokenCounters ModelEvaluator::tokens(std::uint16_t step) const {
  const auto& steps = parts_.forest.counters().steps;
  if (step >= steps.size()) return {};
  return {steps[step].requested_tokens, steps[step].fresh_tokens, steps[step].recomputed_tokens,
          step < cut_asks_.size() ? cut_asks_[step] : 0};
}

}  // namespace quail::exec
