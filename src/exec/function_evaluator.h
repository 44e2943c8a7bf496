#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "exec/evaluator.h"
#include "text/text_store.h"

namespace quail::exec {

/// What a function of (template, argument texts) says instead of a model.
struct PlantedAnswer {
  Verdict verdict = Verdict::kError;
  float margin = 0;
  std::string reason;
};

/// Decides asks by a function: the oracle's rules, or answers that a test or a benchmark plants.
/// Its chunk is 16,384 asks, as sql.md section 3 says of an oracle.
class FunctionEvaluator : public Evaluator {
 public:
  using Function = std::function<PlantedAnswer(std::string_view prompt,
                                               std::span<const std::string_view> arguments)>;
  static constexpr std::size_t kChunkAsks = 16384;

  /// `texts` outlives the evaluator.
  FunctionEvaluator(Function function, const text::TextStore& texts);

  void Begin() override;
  QuestionId Add(const Question& question) override;
  void Ask(const FilterAsk& ask) override;
  void Ask(const JoinAsk& ask) override;
  void Expect(QuestionId, std::span<const TextId>, double) override {}
  std::size_t room() const override;
  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override;
  void Withdraw() override;
  bool counts_tokens() const override { return false; }
  TokenCounters tokens(std::uint16_t) const override { return {}; }

 private:
  /// Asks of one tuple, or of one anchor and its partners.
  struct Pending {
    QuestionId question;
    std::uint32_t key_begin = 0;  ///< in Line::keys: a filter's arguments, or the anchor's
    std::uint32_t key_width = 0;
    std::shared_ptr<const PartnerList> partners;
    std::shared_ptr<const std::vector<std::uint32_t>> subset;
    std::uint64_t tag = 0;
    std::size_t next = 0;  ///< of its partners
  };
  /// Asks of one priority, from `next` on. Emptied at once when the last is answered, so that
  /// nothing is allocated for each.
  struct Line {
    std::vector<Pending> asks;
    std::vector<TextId> keys;
    std::size_t next = 0;
  };

  void Push(std::int32_t priority, std::span<const TextId> key, Pending pending);
  /// Answers up to `n` asks of the first of `line`; true when it is finished.
  bool Answer(Line& line, std::size_t n, std::vector<Outcome>& outcomes);
  void Decide(const Question& question, std::span<const TextId> key, Outcome& outcome);

  Function function_;
  const text::TextStore& texts_;
  std::vector<Question> questions_;
  std::map<std::int32_t, Line, std::greater<>> lines_;
  std::size_t queued_asks_ = 0;
  std::vector<TextId> key_;
  std::vector<std::string_view> arguments_;
};

}  // namespace quail::exec
