#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/strong_id.h"
#include "exec/verdicts.h"
#include "plan/physical.h"

namespace quail::exec {

using QuestionId = base::StrongId<struct QuestionIdTag, std::uint32_t>;

/// What is asked of every tuple of texts of a call, as the evaluator must lay it out.
struct Question {
  std::string prompt;     ///< canonical template
  std::size_t width = 0;  ///< arguments
  std::vector<bool>
      is_anchor;  ///< join layout: which arguments are the anchor's; empty: filter layout
  plan::OnLong on_long = plan::OnLong::kError;

  auto operator<=>(const Question&) const = default;
};

/// The partners' sides of a join's asks: one list serves all anchors.
struct PartnerList {
  std::size_t width = 0;     ///< the question's arguments that are not the anchor's
  std::vector<TextId> keys;  ///< [size, width]

  std::size_t size() const { return width == 0 ? 0 : keys.size() / width; }
  std::span<const TextId> key(std::size_t i) const {
    return std::span(keys).subspan(i * width, width);
  }
};

/// One tuple of a question in filter layout.
struct FilterAsk {
  QuestionId question;
  std::span<const TextId> key;  ///< [width], no kNullText; copied
  /// Of an ask that may well come next, or empty: what it reads is fetched ahead.
  std::span<const TextId> next_key = {};
  std::uint64_t tag = 0;       ///< comes back in the outcome
  std::int32_t priority = 0;   ///< higher first
  std::uint16_t step = 0;      ///< whose tokens it counts to
  bool among_filters = false;  ///< other filters are asked about the same documents
  /// How likely the documents of `key` are read again after this ask.
  double expected_reuse = 0;
  /// The same by one of these filters, which then also reads how their questions begin.
  double filter_reuse = 0;
};

/// One anchor and many partners of a question in join layout.
struct JoinAsk {
  QuestionId question;
  std::span<const TextId>
      anchor_key;  ///< the anchor's arguments in argument order, no kNullText; copied
  std::shared_ptr<const PartnerList> partners;
  std::shared_ptr<const std::vector<std::uint32_t>> subset;  ///< of `partners`; null: all of them
  std::uint64_t tag = 0;
  std::int32_t priority = 0;
  std::uint16_t step = 0;
  bool goes_on = false;       ///< more will be asked about pairs of the anchor
  double expected_reuse = 0;  ///< of the anchor's document
};

/// One answer. `index`: of the partner in its list; 0 for a filter.
struct Outcome {
  std::uint64_t tag = 0;
  std::uint32_t index = 0;
  Verdict verdict = Verdict::kUndecided;
  float margin = 0;
  std::string reason;  ///< of kError
};

/// Token figures of a statement, absent where no model counted them.
struct TokenCounters {
  std::uint64_t requested = 0;
  std::uint64_t fresh = 0;
  std::uint64_t recomputed = 0;
  std::uint64_t cut_asks = 0;  ///< asks that keep a part of their texts only (option on_long)
};

/// Decides asks: a model, a truth table, or what a test plants. One thread.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// Begins a statement: drops what is still to be asked, resets counters.
  virtual void Begin() = 0;
  virtual QuestionId Add(const Question& question) = 0;
  virtual void Ask(const FilterAsk& ask) = 0;
  virtual void Ask(const JoinAsk& ask) = 0;
  /// How likely the document of a filter's tuple, or of a join's anchor key, is read again.
  virtual void Expect(QuestionId question, std::span<const TextId> document_key, double p) = 0;

  /// How many more asks (an anchor with its partners is one) it can use at this time to plan well.
  virtual std::size_t room() const = 0;
  /// One chunk: appends the outcomes; false when nothing is left to ask. Throws Error{kInterrupted}
  /// once `cancel` is set, and what makes the model or device unusable.
  virtual bool Next(std::vector<Outcome>& outcomes, const base::CancelFlag* cancel) = 0;
  /// Drops all that is not yet answered.
  virtual void Withdraw() = 0;

  /// False where there is no tokenizer behind it.
  virtual bool counts_tokens() const = 0;
  virtual TokenCounters tokens(std::uint16_t step) const = 0;
};

}  // namespace quail::exec
