#include <map>
#include <numeric>

#include "exec/model_evaluator_parts.h"
#include "exec/prompt_cut.h"

/// ModelEvaluator: prompts that are longer than the model takes, where option on_long says what
/// stays of them.
namespace quail::exec {
namespace {

/// Lengths that an anchor is cut to beside short partners lie this share of the longest prompt
/// apart: at most eight of them, each with KV of its own, at the price of a sixteenth of its text.
constexpr std::size_t kCutGrains = 16;

std::size_t Sum(std::span<const std::size_t> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

}  // namespace

std::size_t ModelEvaluator::LiteralTokens(std::span<const text::PromptPiece> pieces) {
  std::size_t tokens = 0;
  for (const text::PromptPiece& piece : pieces) {
    if (piece.argument < 0) tokens += piece.tokens.size();
  }
  return tokens;
}

std::vector<std::size_t> ModelEvaluator::LengthsOf(std::span<const TextId> key) const {
  std::vector<std::size_t> lengths;
  for (const TextId id : key) {
    lengths.push_back(id == kNullText ? 0 : parts_.texts.tokens(id).size());
  }
  return lengths;
}

ModelEvaluator::Stem ModelEvaluator::KeptTokens(std::span<const text::PromptPiece> pieces,
                                                std::span<const TextId> arguments,
                                                std::span<const std::size_t> kept,
                                                plan::OnLong on_long) {
  Stem tokens;
  for (const text::PromptPiece& piece : pieces) {
    if (piece.argument < 0) {
      tokens.push_back(piece.tokens);
      continue;
    }
    const auto argument = static_cast<std::size_t>(piece.argument);
    AppendKept(parts_.texts.tokens(arguments[argument]), kept[argument], on_long, tokens);
  }
  return tokens;
}

/// Nothing of it is kept for later questions: they cut the text elsewhere.
infer::SourceId ModelEvaluator::AddCut(const Stem& stem, std::unique_ptr<infer::ChildSource> leaves,
                                       std::int32_t priority, std::uint16_t step) {
  infer::NodeId node = parts_.forest.root();
  for (const auto& piece : stem) {
    node = parts_.forest.Child(node, parts_.forest.Segment(piece));
  }
  if (step >= cut_asks_.size()) cut_asks_.resize(step + std::size_t{1});
  cut_asks_[step] += leaves->upper_bound();
  return parts_.forest.Add(node, std::move(leaves),
                           {.priority = priority, .group = {}, .step = step});
}

bool ModelEvaluator::AskCut(const Prepared& prepared, const FilterAsk& ask) {
  const plan::OnLong on_long = prepared.question.on_long;
  if (on_long == plan::OnLong::kError) return false;
  const auto longest = static_cast<std::size_t>(parts_.forest.config().LongestPrompt());
  const std::size_t fixed = LiteralTokens(prepared.filter.document) + prepared.filter_leaf.size();
  const std::vector<std::size_t> lengths = LengthsOf(ask.key);
  if (fixed + Sum(lengths) <= longest || fixed + lengths.size() > longest) return false;
  const Stem stem =
      KeptTokens(prepared.filter.document, ask.key, KeptLengths(lengths, longest - fixed), on_long);
  const auto source =
      AddCut(stem, std::make_unique<OneLeaf>(prepared.filter_leaf), ask.priority, ask.step);
  open_.Add(source, ask.tag, 1);
  if (parts_.asked != nullptr) parts_.asked->Add(parts_.asked->AddStem(stem), prepared.filter_leaf);
  return true;
}

/// By argument of the question; the anchor's are kNullText.
std::vector<TextId> ModelEvaluator::PartnerArguments(const Prepared& prepared,
                                                     std::size_t partner) const {
  std::vector<TextId> arguments(prepared.question.width, kNullText);
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!prepared.question.is_anchor[i]) arguments[i] = prepared.list->key(partner)[next++];
  }
  return arguments;
}

bool ModelEvaluator::AskCut(const Prepared& prepared, const JoinAsk& ask,
                            std::vector<std::uint32_t>& subset) {
  if (prepared.question.on_long == plan::OnLong::kError) return true;
  const auto longest = static_cast<std::size_t>(parts_.forest.config().LongestPrompt());
  const std::size_t anchor = Sum(LengthsOf(ask.anchor_key));
  const std::size_t frame = LiteralTokens(prepared.join.anchor) + LiteralTokens(prepared.join.kept);
  if (frame + anchor + prepared.leaves->longest <= longest) return true;
  if (subset.empty()) {
    subset.resize(ask.partners->size());
    std::iota(subset.begin(), subset.end(), 0U);
  }
  const std::size_t fixed = frame + LiteralTokens(prepared.join.partner);
  if (fixed + 2 * prepared.question.width > longest) return true;
  std::map<std::size_t, std::vector<CutPartner>> groups;  // by what the anchor keeps
  std::erase_if(subset, [&](std::uint32_t index) {
    const std::size_t leaf = prepared.leaves->leaf(index).size();
    if (frame + anchor + leaf <= longest) return false;
    const std::size_t partner = leaf - (fixed - frame);
    const PairRoom room = RoomOfPair(anchor, partner, longest - fixed, longest / kCutGrains + 1);
    groups[room.anchor].push_back({index, room.partner});
    return true;
  });
  for (const auto& [room, partners] : groups) AskCutGroup(prepared, ask, room, partners);
  return !subset.empty();
}

void ModelEvaluator::AskCutGroup(const Prepared& prepared, const JoinAsk& ask,
                                 std::size_t anchor_room, std::span<const CutPartner> partners) {
  const plan::OnLong on_long = prepared.question.on_long;
  const auto arguments = Spread(prepared.question, ask.anchor_key);
  const auto kept = KeptLengths(LengthsOf(arguments), anchor_room);
  Stem stem = KeptTokens(prepared.join.anchor, arguments, kept, on_long);
  for (const text::PromptPiece& piece : prepared.join.kept) stem.push_back(piece.tokens);
  auto leaves = std::make_shared<LeafTokens>();
  for (const CutPartner& partner : partners) {
    const auto texts = PartnerArguments(prepared, partner.index);
    const auto lengths = KeptLengths(LengthsOf(texts), partner.room);
    for (const auto& piece : KeptTokens(prepared.join.partner, texts, lengths, on_long)) {
      leaves->tokens.insert(leaves->tokens.end(), piece.begin(), piece.end());
    }
    leaves->begins.push_back(leaves->tokens.size());
    leaves->partners.push_back(partner.index);
  }
  if (parts_.asked != nullptr) {
    parts_.asked->Hold(leaves);
    const AskedPaths::Stem noted = parts_.asked->AddStem(stem);
    for (std::size_t i = 0; i < leaves->size(); ++i) parts_.asked->Add(noted, leaves->leaf(i));
  }
  const auto source =
      AddCut(stem, std::make_unique<PartnerLeaves>(leaves, std::vector<std::uint32_t>()),
             ask.priority, ask.step);
  open_.Add(source, ask.tag, partners.size());
}

}  // namespace quail::exec
