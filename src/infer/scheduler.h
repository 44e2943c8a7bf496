#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "infer/kv_cache.h"
#include "infer/node_table.h"
#include "infer/path_trie.h"
#include "infer/prompt_forest.h"
#include "infer/ready_order.h"

namespace quail::infer {

/// The parts of a forest that scheduler and packer share.
struct ForestParts {
  explicit ForestParts(const ForestConfig& settings, std::int32_t alignment)
      : config(settings),
        cache(tree, settings.kv_tokens, alignment),
        order(tree, sources),
        nodes(trie, tree, cache, order, settings.radix) {}
  ForestParts(const ForestParts&) = delete;
  ForestParts& operator=(const ForestParts&) = delete;

  ForestConfig config;
  PathTrie trie;
  KvTree tree;
  KvCache cache;
  base::BlockVector<Source> sources;  ///< slots, reused
  ReadyOrder order;
  NodeTable nodes;
};

/// Sources and groups: which leaves are pulled when, and whose demand holds which KV.
class Scheduler {
 public:
  explicit Scheduler(ForestParts& parts) : parts_(parts) {}

  SourceId Add(std::uint32_t node, std::unique_ptr<ChildSource> stream,
               const SourceOptions& options);
  GroupId AddGroup(const StopRule& rule);
  GroupState group(GroupId group) const { return groups_[group.value()].state; }
  void WithdrawSource(SourceId source);
  void WithdrawNode(std::uint32_t node);
  /// Drops everything; open groups stay without sources.
  void WithdrawAll();

  /// Upper bound of the leaves that are not packed.
  std::uint64_t waiting() const { return waiting_; }
  std::uint64_t live_sources() const { return live_; }

  /// The slot of the source to be packed next, leaves in its window; kNoSource when none is ready.
  /// Pulls with a room of `rows` in mind, ends sources that have run dry.
  std::uint32_t Next(std::int32_t rows);
  /// The first leaf of the window has been packed.
  void LeafPacked(std::uint32_t slot);
  /// Ends a source that has nothing left.
  void Settle(std::uint32_t slot);
  /// The KV node that the first leaf of the window is computed in over several chunks, made if
  /// there is none.
  KvId Target(std::uint32_t slot);
  void ReleaseTarget(std::uint32_t slot);
  /// An answer of an ask of `group` (kNoGroup: none) has come.
  void Answered(std::uint32_t index, bool yes);
  /// All answers of a chunk have come: groups that waited for them go on.
  void StartWaves();

  /// Answers of leaves that are too long, to be delivered.
  std::vector<Answer>& too_long() { return too_long_; }

 private:
  struct Group {
    StopRule rule;
    GroupState state;
    std::uint64_t under_way = 0;         ///< leaves pulled and not answered
    std::vector<std::uint32_t> sources;  ///< ids
    std::vector<std::uint32_t> waiting;  ///< ids of sources that wait, from `waiting_next` on
    std::size_t waiting_next = 0;
    bool answered = false;  ///< listed in answered_groups_
  };

  std::uint32_t SlotOf(std::uint32_t id) const { return slots_[id]; }
  std::uint64_t Allowance(const Group& group) const;
  /// False when the source is out of leaves, or must wait.
  bool Pull(std::uint32_t slot, std::int32_t rows);
  bool PullLeaves(std::uint32_t slot, std::int32_t rows);
  SourceWindow& EmptyWindow(Source& source);
  void Receive(Source& source);
  void SortWindow(SourceWindow& window, ReadoutKind readout);
  void StopGroup(Group& group);
  /// Makes up to `most` waiting sources of the group ready.
  void Wake(Group& group, std::uint64_t most);
  void Withdraw(std::uint32_t slot);
  void Finish(std::uint32_t slot);
  std::uint32_t TakeSlot();

  ForestParts& parts_;
  std::vector<std::uint32_t> slots_;  ///< by source id; kNoSource when finished
  std::vector<std::uint32_t> unused_slots_;
  std::vector<std::unique_ptr<SourceWindow>> unused_windows_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> answered_groups_;
  std::vector<Answer> too_long_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sort_keys_;
  std::vector<Leaf> sorted_;
  std::uint64_t waiting_ = 0;
  std::uint64_t live_ = 0;
  std::uint64_t last_serial_ = 0;
};

}  // namespace quail::infer
