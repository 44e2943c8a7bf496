#include "infer/kv_cache.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace quail::infer {
namespace {

KvCache::Want WantOf(const KvNode& node) {
  if (node.demand > 0) return KvCache::Want::kCertainly;
  return node.chance > 0 ? KvCache::Want::kPerhaps : KvCache::Want::kNever;
}

}  // namespace

KvCache::KvCache(KvTree& tree, std::int64_t slots, std::int32_t alignment)
    : tree_(tree), arena_(slots, alignment) {}

KvCache::Entry KvCache::EntryOf(KvId id, const KvNode& node) {
  return {node.want_class, node.want_value, node.want_stamp, id};
}

void KvCache::CountHeld(KvNode& node, std::int64_t stored_before) {
  if (node.counted_held) held_ -= stored_before;
  node.counted_held = node.stored > 0 && WantOf(node) != Want::kNever;
  if (node.counted_held) held_ += node.stored;
  peak_ = std::max(peak_, held_);
}

void KvCache::Update(KvId id) {
  KvNode& node = tree_[id];
  const auto want = WantOf(node);
  const bool evictable = node.stored > 0 && node.stored_children == 0 && !node.pinned;
  const bool same_want = node.want_class == static_cast<std::uint8_t>(want);
  const bool same_value = want != Want::kPerhaps || node.want_value == node.chance;
  if (node.evictable == evictable && same_want && same_value) return;
  if (node.evictable) order_.erase(EntryOf(id, node));
  if (!same_want || node.want_stamp == 0) {
    node.want_class = static_cast<std::uint8_t>(want);
    ++clock_;
    // Answers and service come in the order in which nodes were begun: of equally wanted ones the
    // last begun is needed last, so it is the first to go.
    node.want_stamp = want == Want::kNever ? clock_ : -clock_;
  }
  node.want_value = want == Want::kPerhaps ? node.chance : 0.0F;
  node.evictable = evictable;
  if (evictable) order_.insert(EntryOf(id, node));
}

void KvCache::ForgetComputed() {
  for (KvId id = 0; id < tree_.size(); ++id) tree_[id].computed_ever = tree_[id].available();
}

void KvCache::AddDemand(KvId id, std::int32_t delta) {
  for (; id != 0; id = tree_[id].parent) {
    KvNode& node = tree_[id];
    const bool wanted = node.demand > 0;
    node.demand = static_cast<std::uint32_t>(static_cast<std::int64_t>(node.demand) + delta);
    if (wanted == (node.demand > 0)) continue;
    fresh_wanted_ += wanted ? -std::int64_t{node.fresh_rows} : std::int64_t{node.fresh_rows};
    CountHeld(node, node.stored);
    Update(id);
  }
}

void KvCache::SetChance(KvId id, float chance) {
  KvNode& node = tree_[id];
  node.chance = chance;
  CountHeld(node, node.stored);
  Update(id);
}

void KvCache::Pin(KvId id) {
  KvNode& node = tree_[id];
  if (node.pinned || node.stored == 0) return;
  node.pinned = true;
  pinned_.push_back(id);
  pinned_slots_ += node.stored;
  Update(id);
}

void KvCache::AddFresh(KvId id, std::uint32_t rows, std::int32_t first_row) {
  KvNode& node = tree_[id];
  QUAIL_CHECK_EQ(node.fresh_rows, 0U);
  node.fresh_rows = rows;
  node.fresh_first_row = first_row;
  if (node.demand > 0) fresh_wanted_ += rows;
  if (!node.listed_fresh) fresh_.push_back(id);
  node.listed_fresh = true;
}

void KvCache::ClearFreshRows(KvNode& node) {
  if (node.demand > 0) fresh_wanted_ -= node.fresh_rows;
  node.fresh_rows = 0;
}

void KvCache::StoreFresh(KvId id) {
  const std::uint32_t rows = tree_[id].fresh_rows;
  ClearFreshRows(tree_[id]);
  Store(id, rows);
  Pin(id);
}

void KvCache::ForgetFresh(KvId id) {
  KvNode& node = tree_[id];
  if (!node.listed_fresh) return;
  ClearFreshRows(node);
  node.listed_fresh = false;
  // Nodes that are forgotten one by one were the last to be begun.
  fresh_.erase(std::next(std::find(fresh_.rbegin(), fresh_.rend(), id)).base());
}

void KvCache::EndChunk() {
  for (const KvId id : fresh_) {
    ClearFreshRows(tree_[id]);
    tree_[id].listed_fresh = false;
  }
  fresh_.clear();
  pinned_slots_ = 0;
  for (const KvId id : pinned_) {
    tree_[id].pinned = false;
    Update(id);
  }
  pinned_.clear();
  for (const KvId id : removed_) Remove(id);
  removed_.clear();
}

bool KvCache::Reserve(std::int64_t count, const Limit& limit) {
  while (arena_.free_slots() < count) {
    if (order_.empty()) return false;
    const auto [want, value, stamp, id] = *order_.begin();
    if (want > static_cast<std::uint8_t>(limit.want)) return false;
    if (want == static_cast<std::uint8_t>(limit.want) && limit.want != Want::kCertainly &&
        value >= limit.value) {
      return false;
    }
    if (static_cast<Want>(want) != Want::kNever) ++evictions_;
    Drop(id);
    evicted_.push_back(id);
  }
  return true;
}

void KvCache::Store(KvId id, std::uint32_t count) {
  KvNode& node = tree_[id];
  const KvNode& parent = tree_[node.parent];
  QUAIL_CHECK_EQ(parent.stored, parent.length);
  // After its own KV, or its parent's: adjacent spans become one.
  const std::vector<KvExtent>& before = node.stored > 0 ? node.extents : parent.extents;
  const std::int64_t preferred = before.empty() ? -1 : before.back().first + before.back().length;
  const std::int64_t stored = node.stored;
  arena_.Allocate(count, preferred, node.extents);
  node.stored += count;
  if (node.pinned) pinned_slots_ += count;
  if (stored == 0 && node.parent != 0) {
    ++tree_[node.parent].stored_children;
    Update(node.parent);
  }
  CountHeld(node, stored);
  Update(id);
}

void KvCache::Drop(KvId id) {
  KvNode& node = tree_[id];
  if (node.stored == 0) return;
  QUAIL_CHECK_EQ(node.stored_children, 0U);
  const std::int64_t stored = node.stored;
  for (const KvExtent& extent : node.extents) arena_.Free(extent);
  std::vector<KvExtent>().swap(node.extents);
  if (node.pinned) pinned_slots_ -= stored;
  node.stored = 0;
  CountHeld(node, stored);
  Update(id);
  if (node.parent != 0) {
    --tree_[node.parent].stored_children;
    Update(node.parent);
  }
}

void KvCache::DropAll() {
  EndChunk();
  for (KvId id = 0; id < tree_.size(); ++id) {
    if (tree_[id].chance > 0) SetChance(id, 0);
  }
  while (!order_.empty()) Drop(std::get<KvId>(*order_.begin()));
  QUAIL_CHECK_EQ(arena_.free_slots(), arena_.slots());
}

void KvCache::Remove(KvId id) {
  ForgetFresh(id);
  if (tree_[id].pinned) {
    removed_.push_back(id);
    return;
  }
  Drop(id);
  tree_.Remove(id);
}

KvId KvCache::Split(KvId id, std::uint32_t length) {
  KvNode& node = tree_[id];
  if (node.evictable) order_.erase(EntryOf(id, node));
  node.evictable = false;
  const bool counted = node.counted_held;
  if (counted) held_ -= node.stored;
  node.counted_held = false;
  const KvId upper = tree_.Split(id, length);
  if (tree_[id].pinned) pinned_.push_back(upper);
  if (tree_[id].listed_fresh) {
    tree_[upper].listed_fresh = true;
    fresh_.insert(std::find(fresh_.begin(), fresh_.end(), id), upper);
  }
  for (const KvId part : {upper, id}) {
    KvNode& changed = tree_[part];
    changed.want_stamp = 0;
    CountHeld(changed, 0);
    Update(part);
  }
  return upper;
}

void KvCache::TakeEvicted(std::vector<KvId>& evicted) {
  evicted.clear();
  evicted.swap(evicted_);
}

}  // namespace quail::infer
