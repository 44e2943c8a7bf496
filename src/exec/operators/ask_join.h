#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/domain.h"
#include "exec/operators/step_run.h"
#include "exec/tuple_index.h"
#include "exec/tuple_lines.h"

namespace quail::exec {

/// The pairs of tuples that a join step decides. Without `pairs_of` all pairs of the two domains.
struct PairDomain {
  struct Partner {
    std::uint32_t index = 0;
    std::uint64_t weight = 0;  ///< pairs of rows
  };
  Domain anchors;  ///< in sparse domains the weights are unused
  Domain partners;
  std::optional<std::vector<std::vector<Partner>>> partners_of;  ///< index = anchor

  static PairDomain Cross(Domain anchors, Domain partners);
  /// `pairs`: distinct rows of anchor columns followed by partner columns.
  static PairDomain Sparse(const Domain& pairs, std::size_t anchor_width);

  std::uint64_t total_weight() const;
  std::uint64_t pairs() const;
};

/// Asks predicates about pairs, anchor by anchor: an anchor's later stages ask about the partners
/// that its earlier ones let survive.
class AskJoin : public StepRun {
 public:
  struct Options {
    std::vector<Stage> stages;  ///< columns: the anchor's, then the partner's, numbered through
    bool is_column = false;     ///< every pair needs the value
    /// Set where anchors come one by one (Admit): the anchor's columns that are the admitted
    /// tuples.
    std::optional<std::vector<std::size_t>> admitted_by = std::nullopt;
  };
  AskJoin(const StepContext& context, PairDomain domain, Options options);

  void Feed() override;
  void Take(const Outcome& outcome) override;
  void Admit(std::span<const TextId> tuple) override;
  void Close() override;
  void Stop() override;
  std::uint64_t survivors() const override { return passed_; }
  std::uint64_t open_asks() const override { return open_asks_; }

 private:
  using Indices = std::shared_ptr<const std::vector<std::uint32_t>>;
  /// Where an anchor is. `alive` null: all its partners.
  struct Anchor {
    std::size_t stage = 0;
    std::uint64_t waiting = 0;
    bool begun = false;
    Indices alive;
  };
  /// What a stage needs besides its predicate.
  struct StageState {
    std::vector<std::size_t> from_anchor;  ///< columns of the anchor's tuple, by argument
    std::vector<std::size_t> from_partner;
    std::vector<bool> is_anchor;        ///< by argument
    std::shared_ptr<PartnerList> list;  ///< one key a partner tuple
    std::vector<std::uint32_t> usable;  ///< partners without NULL
    bool repeats = false;               ///< different pairs can have one key
    TupleIndex asked{0};                ///< keys, where they can repeat
  };

  void QueueAnchors();
  StageState MakeStage(const Stage& stage) const;
  void ReserveVerdicts(std::size_t stage);
  void BeginStage(std::size_t index);
  void EndStage(std::size_t index);
  /// Partners of the anchor's stage that must be asked; null: all partners of the list.
  Indices ToAsk(std::size_t anchor, std::span<const std::uint32_t> alive, bool all);
  std::vector<TextId> AnchorKey(std::size_t stage, std::size_t anchor) const;
  void FillKey(std::size_t stage, std::size_t anchor, std::size_t partner,
               std::vector<TextId>& key) const;
  std::uint64_t Weight(std::size_t anchor, std::size_t partner) const;
  std::vector<std::uint32_t> Alive(std::size_t anchor) const;
  void NextStageOfAll();
  bool any_outside() const { return outside_ && outside_->size() > 0; }

  PairDomain domain_;
  Options options_;
  std::vector<StageState> stages_;
  std::vector<Anchor> anchors_;
  std::vector<std::uint32_t> admitted_;  ///< anchors in the order of asking
  std::size_t next_admitted_ = 0;
  /// Anchors that may still be admitted, by the tuple that admits them.
  std::optional<TupleLines> outside_;
  std::uint64_t partner_weight_ = 0;  ///< rows of all partners
  bool stage_by_stage_ = false;       ///< keys repeat: an anchor's stage ends with the stage of all
  std::size_t common_stage_ = 0;
  std::uint64_t open_asks_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t passed_ = 0;
  std::vector<TextId> key_;
};

}  // namespace quail::exec
