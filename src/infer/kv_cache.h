#pragma once

#include <cstdint>
#include <vector>

#include "infer/eviction_order.h"
#include "infer/kv_arena.h"
#include "infer/kv_tree.h"

namespace quail::infer {

/// Decides whose KV stays in the arena. The future is known, so nothing is guessed by recency: KV
/// without use goes first (oldest first), then KV of possible use by falling worth (chance x tokens
/// to recompute, per slot: the chance), then KV of certain use, farthest next use first (Belady
/// 1966): nodes are served in the order in which they were begun. A node is dropped only after its
/// stored children, so that stored KV is always readable.
class KvCache {
 public:
  KvCache(KvTree& tree, std::int64_t slots, std::int32_t alignment);

  /// How much a node is wanted, in the order of eviction.
  enum class Want : std::uint8_t { kNever, kPerhaps, kCertainly };
  struct Limit {
    Want want = Want::kCertainly;
    float value = 0;  ///< chance, for kPerhaps
  };

  std::int64_t slots() const { return arena_.slots(); }
  std::int64_t free_slots() const { return arena_.free_slots(); }
  /// Slots of nodes that are wanted, and their peak.
  std::int64_t held() const { return held_; }
  std::int64_t peak() const { return peak_; }
  void ResetPeak() { peak_ = held_; }
  std::uint64_t evictions() const { return evictions_; }
  void ResetEvictions() { evictions_ = 0; }

  /// From here on only what is stored now counts as computed before.
  void ForgetComputed();

  /// Adds `delta` to the demand of `id` and all above it.
  void AddDemand(KvId id, std::int32_t delta);
  void SetChance(KvId id, float chance);

  // The chunk being packed.
  std::int64_t pinned_slots() const { return pinned_slots_; }
  /// Fresh rows of nodes with demand: they will need slots.
  std::int64_t fresh_wanted() const { return fresh_wanted_; }
  void Pin(KvId id);
  void AddFresh(KvId id, std::uint32_t rows, std::int32_t first_row);
  /// Nodes with fresh rows, parents before children.
  const std::vector<KvId>& fresh() const { return fresh_; }
  /// The fresh rows get slots: REQUIRES as Store. The node is pinned.
  void StoreFresh(KvId id);
  /// The fresh rows of the node are forgotten.
  void ForgetFresh(KvId id);
  /// Ends the chunk: forgets what is still fresh, unpins all.
  void EndChunk();

  /// Drops nodes below `limit` until `count` slots are free, and nodes without use until they are
  /// in one piece; false if there are not enough nodes below `limit`.
  bool Reserve(std::int64_t count, const Limit& limit);
  /// Slots for `count` more positions of the node. REQUIRES: that many are free, the parent is
  /// stored to its end.
  void Store(KvId id, std::uint32_t count);
  /// Returns the node's slots. REQUIRES: no stored children.
  void Drop(KvId id);
  /// Ends the chunk, returns all slots and takes back all chances.
  void DropAll();
  /// Drops and removes a node that no one else knows, at the end of the chunk where that reads it.
  void Remove(KvId id);
  /// Cuts a node (KvTree::Split) and keeps the orders.
  KvId Split(KvId id, std::uint32_t length);

  /// Nodes evicted since the last call.
  void TakeEvicted(std::vector<KvId>& evicted);

 private:
  /// Puts the node where it belongs after any change of its state.
  void Update(KvId id);
  void Evict(KvId id);
  void CountHeld(KvId id, std::int64_t stored_before);
  void ClearFreshRows(KvId id);

  KvTree& tree_;
  KvArena arena_;
  EvictionOrder order_;
  std::vector<KvId> pinned_;
  std::vector<KvId> fresh_;
  std::vector<KvId> removed_;
  std::vector<KvId> evicted_;
  std::int64_t pinned_slots_ = 0;
  std::int64_t fresh_wanted_ = 0;
  std::int64_t held_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t clock_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace quail::infer
