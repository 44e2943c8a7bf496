#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/domain.h"
#include "exec/operators/step_run.h"
#include "exec/tuple_lines.h"

namespace quail::exec {

/// Asks predicates about each tuple of a domain, tuple by tuple: a later one only where all earlier
/// ones let the tuple survive, while the tuple's documents are still held.
class AskFilter : public StepRun {
 public:
  struct Options {
    std::vector<Stage> stages;
    bool feeds_later_step = false;  ///< a surviving tuple's document will be read again
    /// A computed column: every tuple needs the value, none is dropped by it.
    bool is_column = false;
  };
  AskFilter(const StepContext& context, Domain domain, Options options);

  void Feed() override;
  void Take(const Outcome& outcome) override;
  void Stop() override;
  std::uint64_t survivors() const override { return counters_.rows_out; }
  std::uint64_t open_asks() const override;

 private:
  using Key = std::vector<TextId>;

  /// Brings a tuple forward from `stage` until it needs an answer, is dropped or has passed.
  void Advance(std::size_t item, std::size_t stage);
  /// Decides a stage of an item with a judgement: true when it goes on to the next.
  bool Settle(std::size_t item, std::size_t stage, const Judgement& judgement);
  void Wait(std::size_t item, std::size_t stage, const Key& key);
  void Submit(std::size_t item, std::size_t stage, const Key& key);
  void Drop(std::size_t item, std::size_t stage);
  void CountUnjudged(std::size_t item);
  bool keeps_documents() const { return options_.feeds_later_step || options_.stages.size() > 1; }
  void FillKey(std::size_t item, std::size_t stage, Key& key) const;

  Domain domain_;
  Options options_;
  /// By stage: tuples that wait for a key which others may have too; none where each has its own.
  std::vector<std::optional<TupleLines>> lines_;
  std::size_t next_item_ = 0;
  std::uint64_t waiting_ = 0;  ///< asks that are not answered
  std::vector<bool> waits_;    ///< by tuple: it waits for an ask that is its own
  Key key_;
  Key next_key_;
};

}  // namespace quail::exec
