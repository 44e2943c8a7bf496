#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/checkpoint_file.h"
#include "exec/evaluator.h"
#include "text/text_store.h"

namespace quail::exec {

/// Answers from a checkpoint what it holds, hands the rest to another evaluator and keeps what that
/// decides, chunk by chunk.
class CheckpointEvaluator : public Evaluator {
 public:
  /// `decider` names everything beside the question that verdicts depend on: hash of model and
  /// adapter, numeric mode; `longest_prompt`, in tokens, where texts are cut. All references
  /// outlive this.
  CheckpointEvaluator(Evaluator& inner, CheckpointFile& file, const text::TextStore& texts,
                      std::string decider, std::int64_t longest_prompt);

  /// Answers that came from the checkpoint.
  std::uint64_t reused() const { return reused_; }

  void Begin() override;
  QuestionId Add(const Question& question) override;
  void Ask(const FilterAsk& ask) override;
  void Ask(const JoinAsk& ask) override;
  void Expect(QuestionId question, std::span<const TextId> document_key, double p) override {
    inner_.Expect(question, document_key, p);
  }
  std::size_t room() const override { return ready_.size() < kReadyAtOnce ? inner_.room() : 0; }
  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override;
  void Withdraw() override;
  bool counts_tokens() const override { return inner_.counts_tokens(); }
  TokenCounters tokens(std::uint16_t step) const override { return inner_.tokens(step); }

 private:
  /// So many kept answers are handed back before more is asked: LIMIT stops as it would have.
  static constexpr std::size_t kReadyAtOnce = 16384;

  struct Asked {
    Question question;
    base::Hash128 hash;  ///< of the question and the decider
  };
  /// What the outcomes of a tag are about.
  struct Open {
    QuestionId question;
    std::vector<TextId> key;  ///< a filter's, or a join's anchor's
    std::shared_ptr<const PartnerList> partners;
    std::size_t left = 0;
  };

  base::Hash128 KeyOf(const Open& open, std::size_t partner) const;
  base::Hash128 TextHash(TextId id) const;
  /// Puts a kept answer into `ready_`, if there is one.
  bool Reuse(const Open& open, std::uint64_t tag, std::uint32_t partner);

  Evaluator& inner_;
  CheckpointFile& file_;
  const text::TextStore& texts_;
  std::string decider_;
  std::int64_t longest_prompt_;
  std::vector<Asked> questions_;
  std::map<std::uint64_t, Open> open_;
  std::vector<Outcome> ready_;
  std::uint64_t reused_ = 0;
};

}  // namespace quail::exec
