#include "infer/kv_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace quail::infer {
namespace {

/// Moves the slots of the leading `count` positions from `from` to `to`.
void MoveExtents(std::vector<KvExtent>& from, std::int64_t count, std::vector<KvExtent>& to) {
  std::vector<KvExtent> rest;
  for (const KvExtent& extent : from) {
    const std::int64_t part = std::min(count, extent.length);
    if (part > 0) to.push_back({extent.first, part});
    if (part < extent.length) rest.push_back({extent.first + part, extent.length - part});
    count -= part;
  }
  from = std::move(rest);
}

}  // namespace

KvTree::KvTree() {
  nodes_.Append();
  states_.Append();
}

KvState& KvTree::NewState(KvId id) {
  std::uint32_t& state = nodes_[id].state;
  if (unused_states_.empty()) {
    state = static_cast<std::uint32_t>(states_.size());
    return states_.Append();
  }
  state = unused_states_.back();
  unused_states_.pop_back();
  return states_[state];
}

void KvTree::Rest(KvId id) {
  KvNode& node = nodes_[id];
  if (node.state == 0 || node.demand > 0) return;
  KvState& state = states_[node.state];
  if (state.available() > 0 || state.stored_children > 0 || state.listed_fresh || state.pinned ||
      state.evictable() || state.ready || state.first_source != kNoSource ||
      state.ready_children != 0) {
    return;
  }
  // The list keeps its memory for the next node.
  std::vector<KvExtent> extents = std::move(state.extents);
  state = KvState{};
  extents.clear();
  state.extents = std::move(extents);
  unused_states_.push_back(node.state);
  node.state = 0;
}

KvId KvTree::Add(KvId parent, std::span<const TokenId> tokens) {
  KvId id;
  if (unused_.empty()) {
    id = static_cast<KvId>(nodes_.size());
    QUAIL_CHECK_LT(id, kNoKv);
    nodes_.Append();
  } else {
    id = unused_.back();
    unused_.pop_back();
    nodes_[id] = KvNode{};
  }
  nodes_[id].tokens = tokens.data();
  nodes_[id].length = static_cast<std::uint32_t>(tokens.size());
  nodes_[id].begin = nodes_[parent].end();
  nodes_[id].parent = parent;
  return id;
}

void KvTree::Remove(KvId id) {
  Rest(id);
  QUAIL_CHECK_EQ(nodes_[id].state, 0U);
  nodes_[id].parent = kNoKv;
  unused_.push_back(id);
}

KvId KvTree::Split(KvId id, std::uint32_t length) {
  const KvId upper_id = Add(nodes_[id].parent, {nodes_[id].tokens, length});
  KvNode& upper = nodes_[upper_id];
  KvNode& lower = nodes_[id];
  QUAIL_CHECK(length > 0 && length < lower.length);
  upper.demand = lower.demand;
  upper.computed_ever = std::min(lower.computed_ever, length);
  if (lower.state != 0) SplitState(Wake(upper_id), states_[lower.state], length);

  lower.tokens += length;
  lower.begin += length;
  lower.length -= length;
  lower.parent = upper_id;
  lower.computed_ever -= upper.computed_ever;
  return upper_id;
}

void KvTree::SplitState(KvState& upper, KvState& lower, std::uint32_t length) {
  QUAIL_CHECK(!lower.ready && !lower.evictable());
  upper.pinned = lower.pinned;
  upper.stored = std::min(lower.stored, length);
  MoveExtents(lower.extents, upper.stored, upper.extents);
  const std::uint32_t available = lower.available();
  upper.fresh_rows = std::min(available, length) - upper.stored;
  upper.fresh_first_row = lower.fresh_first_row;

  lower.stored -= upper.stored;
  lower.fresh_rows -= upper.fresh_rows;
  lower.fresh_first_row += static_cast<std::int32_t>(upper.fresh_rows);
  upper.stored_children = lower.stored > 0 ? 1 : 0;
}

KvId KvTree::Locate(KvId id, std::uint32_t depth) const {
  QUAIL_DCHECK(depth > 0 && depth <= nodes_[id].end());
  while (nodes_[id].begin >= depth) id = nodes_[id].parent;
  return id;
}

void KvTree::Path(KvId id, std::vector<KvId>& path) const {
  path.clear();
  for (; id != 0; id = nodes_[id].parent) path.push_back(id);
  std::reverse(path.begin(), path.end());
}

}  // namespace quail::infer
