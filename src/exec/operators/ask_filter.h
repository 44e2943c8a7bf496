#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/domain.h"
#include "exec/operators/step_run.h"

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
    std::optional<plan::RelationId> relation = std::nullopt;  ///< whose rows these are, if one's
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
  std::vector<bool> distinct_keys_;  ///< by stage: no two tuples have one key
  std::size_t next_item_ = 0;
  std::uint64_t waiting_ = 0;  ///< asks that are not answered
  std::vector<bool> waits_;    ///< by tuple: it waits for an ask that is its own
  /// The tuples that wait for a key which others may have too, by (stage, key).
  std::map<std::pair<std::size_t, Key>, std::vector<std::size_t>> shared_;
  Key key_;
};

}  // namespace quail::exec
