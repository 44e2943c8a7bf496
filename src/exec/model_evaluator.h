#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "exec/asked_paths.h"
#include "exec/evaluator.h"
#include "exec/open_sources.h"
#include "exec/token_prompts.h"
#include "infer/prompt_forest.h"
#include "text/bpe_tokenizer.h"
#include "text/prompt.h"
#include "text/text_store.h"

namespace quail::exec {

/// What a model's evaluator works with; all outlive it. The forest keeps tokens of the evaluator,
/// so nothing is asked of it once the evaluator is gone.
struct ModelParts {
  infer::PromptForest& forest;
  /// Null: there are only prompts and texts that are token ids as they are.
  const text::BpeTokenizer* tokenizer = nullptr;
  text::TextStore& texts;
  base::ThreadPool& pool;
  text::AnswerWords words;
  const text::ChatPieces* chat = nullptr;  ///< null: layout plain
  float margin_scale = 1;                  ///< > 0; margins are multiplied by it to be calibrated
  std::int32_t vocabulary = 0;             ///< ids of token lists lie below it
  const TokenPrompts* token_prompts = nullptr;  ///< null: all prompts are text
  AskedPaths* asked = nullptr;                  ///< where the paths of asks are noted, if anywhere
};

/// Decides asks by a model: lays prompts out as token segments of the prompt forest, so that a
/// document or anchor is read once for all its questions or partners.
class ModelEvaluator : public Evaluator {
 public:
  explicit ModelEvaluator(const ModelParts& parts);
  ~ModelEvaluator() override;

  void Begin() override;
  /// The forest's ids from before are void.
  void ForestCleared();
  QuestionId Add(const Question& question) override;
  void Ask(const FilterAsk& ask) override;
  void Ask(const JoinAsk& ask) override;
  void Expect(QuestionId question, std::span<const TextId> document_key, double p) override;
  std::size_t room() const override;
  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override;
  void Withdraw() override;
  bool counts_tokens() const override { return true; }
  /// Answers since Begin, if their margins are all the same to the last bit; else 0.
  std::uint64_t equal_margins() const { return margins_vary_ ? 0 : margins_; }
  TokenCounters tokens(std::uint16_t step) const override;

 private:
  using Tokens = std::vector<base::TokenId>;
  /// A path's tokens but the leaf's, in pieces.
  using Stem = std::vector<std::span<const base::TokenId>>;
  struct Prepared;
  struct LeafTokens;
  class PartnerLeaves;
  /// A partner whose text keeps `room` tokens.
  struct CutPartner {
    std::uint32_t index = 0;
    std::size_t room = 0;
  };
  /// Gives constant pieces their tokens.
  void Tokenize(std::vector<text::PromptPiece>& pieces);
  const Tokens& Encoded(const std::string& text);
  /// The tokens after a filter's documents, kept as long as the evaluator.
  std::span<const base::TokenId> FilterLeaf(const text::FilterPrompt& prompt);
  /// The segment of a text's tokens, which are ready.
  infer::SegmentId SegmentOf(TextId text);
  /// The reason why a text cannot be part of a prompt, empty if it can. Tokenises it where that is
  /// pending.
  std::string Fault(TextId id);
  std::string FaultOfTokens(TextId id) const;
  bool HasSegment(TextId id) const {
    return id.value() < segments_.size() && segments_[id.value()] != kNoSegment;
  }
  std::string Fault(std::span<const TextId> key);
  /// The node after the pieces, whose arguments are looked up in `arguments` (by argument of the
  /// call).
  infer::NodeId Walk(infer::NodeId node, std::span<const text::PromptPiece> pieces,
                     std::span<const TextId> arguments);
  /// The tokens of pieces, of whose arguments `kept` tokens (by argument) stay.
  Stem KeptTokens(std::span<const text::PromptPiece> pieces, std::span<const TextId> arguments,
                  std::span<const std::size_t> kept, plan::OnLong on_long);
  static std::size_t LiteralTokens(std::span<const text::PromptPiece> pieces);
  /// Tokens of each text of a key.
  std::vector<std::size_t> LengthsOf(std::span<const TextId> key) const;
  infer::SourceId AddCut(const Stem& stem, std::unique_ptr<infer::ChildSource> leaves,
                         std::int32_t priority, std::uint16_t step);
  /// Asks with cut texts where the prompt is too long and the question says how; false: it is for
  /// Ask to go on.
  bool AskCut(const Prepared& prepared, const FilterAsk& ask);
  /// Asks the pairs whose prompts are too long with cut texts and takes them out of `subset`, which
  /// is empty for all partners; false when nothing is left to ask.
  bool AskCut(const Prepared& prepared, const JoinAsk& ask, std::vector<std::uint32_t>& subset);
  void AskCutGroup(const Prepared& prepared, const JoinAsk& ask, std::size_t anchor_room,
                   std::span<const CutPartner> partners);
  std::vector<TextId> PartnerArguments(const Prepared& prepared, std::size_t partner) const;
  /// Notes the paths of an ask's leaves.
  void Note(std::span<const text::PromptPiece> stem, std::span<const TextId> arguments,
            std::span<const std::span<const base::TokenId>> leaves);
  void NoteHead(std::span<const base::TokenId> question);
  /// Whether the questions' common beginning is kept behind the documents of an ask.
  bool KeepsHead(const FilterAsk& ask) const;
  void NoteJoin(const Prepared& prepared, std::span<const TextId> arguments,
                std::span<const std::uint32_t> subset);
  /// The key of a join's anchor spread over the question's arguments; the partner's are kNullText.
  static std::vector<TextId> Spread(const Question& question, std::span<const TextId> anchor_key);
  std::shared_ptr<const LeafTokens> LeavesOf(Prepared& prepared,
                                             const std::shared_ptr<const PartnerList>& partners);
  void ForgetFrame(infer::NodeId document);
  Outcome ToOutcome(const infer::Answer& answer, std::uint64_t tag);

  ModelParts parts_;
  std::map<std::string, Tokens> literals_;
  std::set<Tokens> filter_leaves_;
  static constexpr std::uint32_t kNoSegment = 0xFFFFFFFFU;
  /// Of texts, by id: a long text is looked at once.
  std::vector<std::uint32_t> segments_;
  std::vector<std::unique_ptr<Prepared>> questions_;
  std::size_t filter_questions_ = 0;
  std::span<const base::TokenId> head_;  ///< that all filter questions begin with
  OpenSources open_;
  bool failed_ = false;  ///< a call has thrown: the forest is cleared before the next statement
  /// By an anchor's document that a later question will read: what follows it in the last question,
  /// of which the next may have the beginning.
  std::unordered_map<infer::NodeId, infer::NodeId> kept_frames_;
  std::uint64_t margins_ = 0;
  float first_margin_ = 0;
  bool margins_vary_ = false;
  std::vector<Outcome> ready_;           ///< decided without the model
  std::vector<std::uint64_t> cut_asks_;  ///< by step
  std::vector<infer::Answer> answers_;
};

}  // namespace quail::exec
