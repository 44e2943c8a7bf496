#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "exec/evaluator.h"
#include "exec/function_evaluator.h"

namespace quail::exec {

/// Where answers come from that stand in for a model's.
class PlantedSource {
 public:
  virtual ~PlantedSource() = default;
  /// Throws Error{kUsage} for a question that has no answers.
  virtual void Require(const Question& question) const = 0;
  /// REQUIRES: Require(question) did not throw.
  virtual PlantedAnswer Of(const Question& question, std::span<const TextId> key) const = 0;
};

/// By template and texts: TRUE for the tuples that are listed, FALSE for all others of a planted
/// template.
class PlantedAnswers : public PlantedSource {
 public:
  /// All tuples of `prompt` are FALSE until Add says otherwise.
  void Plant(std::string_view prompt);
  /// REQUIRES: `prompt` is planted. Throws Error{kUnsupported} for keys of more than two texts.
  void Add(std::string_view prompt, std::span<const TextId> key);
  bool Has(std::string_view prompt) const { return tables_.contains(prompt); }

  void Require(const Question& question) const override;
  PlantedAnswer Of(const Question& question, std::span<const TextId> key) const override;

 private:
  std::map<std::string, std::unordered_set<std::uint64_t>, std::less<>> tables_;
};

/// What a function of template and texts says: an oracle's rules.
class FunctionAnswers : public PlantedSource {
 public:
  /// `texts` outlives the answers.
  FunctionAnswers(FunctionEvaluator::Function function, const text::TextStore& texts)
      : function_(std::move(function)), texts_(texts) {}
  void Require(const Question&) const override {}
  PlantedAnswer Of(const Question& question, std::span<const TextId> key) const override;

 private:
  FunctionEvaluator::Function function_;
  const text::TextStore& texts_;
};

/// Lets a model do all its work, and replaces each answer that it read by the planted one before
/// anything depends on it. Errors stay.
class PlantedEvaluator : public Evaluator {
 public:
  /// Both outlive the evaluator.
  PlantedEvaluator(Evaluator& model, const PlantedSource& answers)
      : model_(model), answers_(answers) {}

  void Begin() override;
  /// Throws Error{kUsage} for a question without planted answers.
  QuestionId Add(const Question& question) override;
  void Ask(const FilterAsk& ask) override;
  void Ask(const JoinAsk& ask) override;
  void Expect(QuestionId question, std::span<const TextId> key, double p) override {
    model_.Expect(question, key, p);
  }
  std::size_t room() const override { return model_.room(); }
  bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) override;
  void Withdraw() override;
  bool counts_tokens() const override { return model_.counts_tokens(); }
  TokenCounters tokens(std::uint16_t step) const override { return model_.tokens(step); }

 private:
  /// An ask by its tag; `waiting` of its answers are still to come.
  struct Open {
    std::size_t question = 0;
    std::vector<TextId> key;  ///< all arguments of a filter, the anchor's of a join
    std::shared_ptr<const PartnerList> partners;
    std::uint64_t waiting = 0;
  };

  void Replace(const Open& open, Outcome& outcome);

  Evaluator& model_;
  const PlantedSource& answers_;
  std::vector<Question> questions_;  ///< index = the model's QuestionId
  std::unordered_map<std::uint64_t, Open> open_;
  std::vector<TextId> key_;
};

}  // namespace quail::exec
