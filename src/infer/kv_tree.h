#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/block_vector.h"
#include "base/strong_id.h"
#include "infer/kv_arena.h"

namespace quail::infer {

using base::TokenId;
/// Index of a KvNode.
using KvId = std::uint32_t;
constexpr KvId kNoKv = 0xffffffffU;
constexpr std::uint32_t kNoSource = 0xffffffffU;

/// A run of tokens after a parent: the unit in which KV is computed, stored and dropped.
struct KvNode {
  const TokenId* tokens = nullptr;
  std::uint32_t begin = 0;  ///< position of the first token in the path
  std::uint32_t length = 0;
  KvId parent = kNoKv;
  std::uint32_t computed_ever = 0;  ///< leading positions that were computed at some time
  std::uint32_t demand = 0;         ///< sources, at or below it, that still have leaves to pack
  float chance = 0;                 ///< probability that it is wanted again without demand
  std::uint32_t state = 0;          ///< index of its KvState; 0: it is at rest

  std::uint32_t end() const { return begin + length; }
};

constexpr std::uint32_t kNotInOrder = 0xffffffffU;

/// What a node has besides while it is in demand, or has KV. The leading `stored` positions are in
/// the arena (or are written by a chunk that has begun), `fresh_rows` more are rows of the chunk
/// being packed.
struct KvState {
  std::vector<KvExtent> extents;
  std::uint32_t stored = 0;
  std::uint32_t stored_children = 0;
  std::uint32_t fresh_rows = 0;
  std::int32_t fresh_first_row = 0;

  // Its entry in the eviction order (KvCache).
  std::int64_t want_stamp = 0;
  float want_value = 0;
  std::uint32_t order_place = kNotInOrder;
  std::uint8_t want_class = 0;
  bool counted_held : 1 = false;

  bool listed_fresh : 1 = false;  ///< in the packed chunk's list of fresh nodes
  bool pinned : 1 = false;        ///< read by the packed chunk: its slots stay

  // Its place among its siblings (ReadyOrder).
  bool ready : 1 = false;
  bool ready_started : 1 = false;
  std::int32_t ready_priority = 0;
  KvId ready_previous = kNoKv, ready_next = kNoKv;
  std::uint32_t first_source = kNoSource, last_source = kNoSource;
  std::uint32_t ready_children = 0;  ///< its list in ReadyOrder; 0: none

  std::uint32_t available() const { return stored + fresh_rows; }
  bool started() const { return available() > 0; }
  bool evictable() const { return order_place != kNotInOrder; }
};

/// The tree of KvNodes. Node 0 is the root, which has no tokens. Most nodes are at rest: documents
/// that were asked about and dropped. References stay valid until the node is removed or put to
/// rest.
class KvTree {
 public:
  KvTree();

  KvNode& operator[](KvId id) { return nodes_[id]; }
  const KvNode& operator[](KvId id) const { return nodes_[id]; }
  std::size_t size() const { return nodes_.size(); }

  /// Of a node at rest: a state in which nothing is set.
  const KvState& state(KvId id) const { return states_[nodes_[id].state]; }
  /// A node's own state: one that is at rest gets it.
  KvState& Wake(KvId id) {
    const std::uint32_t state = nodes_[id].state;
    return state != 0 ? states_[state] : NewState(id);
  }
  /// Takes the state from a node with nothing in it and no demand.
  void Rest(KvId id);

  KvId Add(KvId parent, std::span<const TokenId> tokens);
  /// Frees the id of a node without children, KV or place in any order.
  void Remove(KvId id);
  /// Cuts the node after `length` tokens: a node is put above it that has them, and their KV and
  /// fresh rows; `id` keeps the rest, and its end. The caller takes both out of all orders before.
  /// REQUIRES: 0 < length < node's length.
  KvId Split(KvId id, std::uint32_t length);
  /// The node, `id` or above, that holds the token at position `depth` - 1. REQUIRES: 0 < depth <=
  /// end of `id`.
  KvId Locate(KvId id, std::uint32_t depth) const;
  /// The nodes from below the root to `id`.
  void Path(KvId id, std::vector<KvId>& path) const;

 private:
  KvState& NewState(KvId id);
  static void SplitState(KvState& upper, KvState& lower, std::uint32_t length);

  base::BlockVector<KvNode> nodes_;
  std::vector<KvId> unused_;
  base::BlockVector<KvState> states_;  ///< the first is that of all nodes at rest
  std::vector<std::uint32_t> unused_states_;
};

}  // namespace quail::infer
