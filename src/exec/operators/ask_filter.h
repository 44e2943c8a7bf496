#pragma once

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
  };
  AskFilter(const StepContext& context, Domain domain, Options options);

  void Feed() override;
  void Take(const Outcome& outcome) override;
  void Stop() override;
  std::uint64_t survivors() const override { return counters_.rows_out; }
  std::uint64_t open_asks() const override;

 private:
  /// Brings a tuple forward from `stage` until it needs an answer, is dropped or has passed.
  void Advance(std::size_t item, std::size_t stage);
  /// Decides a stage of an item with a judgement: true when it goes on to the next.
  bool Settle(std::size_t item, std::size_t stage, const Judgement& judgement);
  void Submit(std::size_t item, std::size_t stage);
  void Drop(std::size_t item, std::size_t stage);
  std::vector<TextId> Key(std::size_t item, std::size_t stage) const;

  Domain domain_;
  Options options_;
  std::size_t next_item_ = 0;
  /// Asked and not answered: the tuples that wait for each (stage, key).
  std::map<std::pair<std::size_t, std::vector<TextId>>, std::vector<std::size_t>> waiting_;
};

}  // namespace quail::exec
