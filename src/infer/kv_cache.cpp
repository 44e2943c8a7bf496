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
    : tree_(tree), arena_(slots, alignment), order_(tree) {}

void KvCache::CountHeld(KvId id, std::int64_t stored_before) {
  KvState& state = tree_.Wake(id);
  if (state.counted_held) held_ -= stored_before;
  state.counted_held = state.stored > 0 && WantOf(tree_[id]) != Want::kNever;
  if (state.counted_held) held_ += state.stored;
  peak_ = std::max(peak_, held_);
}

void KvCache::Update(KvId id) {
  const KvNode& node = tree_[id];
  KvState& state = tree_.Wake(id);
  const auto want = WantOf(node);
  const bool evictable = state.stored > 0 && state.stored_children == 0 && !state.pinned;
  const bool same_want = state.want_class == static_cast<std::uint8_t>(want);
  const bool same_value = want != Want::kPerhaps || state.want_value == node.chance;
  if (state.evictable() == evictable && same_want && same_value) return;
  if (state.evictable()) order_.Erase(id);
  if (!same_want || state.want_stamp == 0) {
    state.want_class = static_cast<std::uint8_t>(want);
    ++clock_;
    // Answers and service come in the order in which nodes were begun: of equally wanted ones the
    // last begun is needed last, so it is the first to go.
    state.want_stamp = want == Want::kNever ? clock_ : -clock_;
  }
  state.want_value = want == Want::kPerhaps ? node.chance : 0.0F;
  if (evictable) order_.Insert(id);
}

void KvCache::ForgetComputed() {
  for (KvId id = 0; id < tree_.size(); ++id) tree_[id].computed_ever = tree_.state(id).available();
}

void KvCache::AddDemand(KvId id, std::int32_t delta) {
  for (; id != 0; id = tree_[id].parent) {
    KvNode& node = tree_[id];
    const bool wanted = node.demand > 0;
    node.demand = static_cast<std::uint32_t>(static_cast<std::int64_t>(node.demand) + delta);
    if (wanted == (node.demand > 0)) continue;
    const KvState& state = tree_.state(id);
    fresh_wanted_ += wanted ? -std::int64_t{state.fresh_rows} : std::int64_t{state.fresh_rows};
    CountHeld(id, state.stored);
    Update(id);
    if (wanted) tree_.Rest(id);
  }
}

void KvCache::SetChance(KvId id, float chance) {
  KvNode& node = tree_[id];
  node.chance = chance;
  if (node.state == 0) return;
  CountHeld(id, tree_.state(id).stored);
  Update(id);
}

void KvCache::Pin(KvId id) {
  if (tree_.state(id).pinned || tree_.state(id).stored == 0) return;
  KvState& state = tree_.Wake(id);
  state.pinned = true;
  pinned_.push_back(id);
  pinned_slots_ += state.stored;
  Update(id);
}

void KvCache::AddFresh(KvId id, std::uint32_t rows, std::int32_t first_row) {
  KvState& state = tree_.Wake(id);
  QUAIL_CHECK_EQ(state.fresh_rows, 0U);
  state.fresh_rows = rows;
  state.fresh_first_row = first_row;
  if (tree_[id].demand > 0) fresh_wanted_ += rows;
  if (!state.listed_fresh) fresh_.push_back(id);
  state.listed_fresh = true;
}

void KvCache::ClearFreshRows(KvId id) {
  KvState& state = tree_.Wake(id);
  if (tree_[id].demand > 0) fresh_wanted_ -= state.fresh_rows;
  state.fresh_rows = 0;
}

void KvCache::StoreFresh(KvId id) {
  const std::uint32_t rows = tree_.state(id).fresh_rows;
  ClearFreshRows(id);
  Store(id, rows);
  Pin(id);
}

void KvCache::ForgetFresh(KvId id) {
  if (!tree_.state(id).listed_fresh) return;
  ClearFreshRows(id);
  tree_.Wake(id).listed_fresh = false;
  // Nodes that are forgotten one by one were the last to be begun.
  fresh_.erase(std::next(std::find(fresh_.rbegin(), fresh_.rend(), id)).base());
}

void KvCache::EndChunk() {
  for (const KvId id : fresh_) {
    ClearFreshRows(id);
    tree_.Wake(id).listed_fresh = false;
    tree_.Rest(id);
  }
  fresh_.clear();
  pinned_slots_ = 0;
  for (const KvId id : pinned_) {
    tree_.Wake(id).pinned = false;
    Update(id);
    tree_.Rest(id);
  }
  pinned_.clear();
  for (const KvId id : removed_) Remove(id);
  removed_.clear();
}

bool KvCache::Reserve(std::int64_t count, const Limit& limit) {
  while (arena_.free_slots() < count) {
    if (order_.empty()) return false;
    const EvictionOrder::Entry& first = order_.first();
    if (first.want_class > static_cast<std::uint8_t>(limit.want)) return false;
    if (first.want_class == static_cast<std::uint8_t>(limit.want) &&
        limit.want != Want::kCertainly && first.value >= limit.value) {
      return false;
    }
    Evict(first.id);
  }
  // In one piece, where KV that nobody waits for is all that lies in between: each piece more is a
  // span for every row that reads it.
  while (arena_.longest_free() < count && !order_.empty() &&
         order_.first().want_class == static_cast<std::uint8_t>(Want::kNever)) {
    Evict(order_.first().id);
  }
  return true;
}

void KvCache::Evict(KvId id) {
  if (WantOf(tree_[id]) != Want::kNever) ++evictions_;
  Drop(id);
  evicted_.push_back(id);
}

void KvCache::Store(KvId id, std::uint32_t count) {
  KvState& node = tree_.Wake(id);
  const KvId parent_id = tree_[id].parent;
  const KvState& parent = tree_.state(parent_id);
  QUAIL_CHECK_EQ(parent.stored, tree_[parent_id].length);
  // After its own KV, or its parent's: adjacent spans become one.
  const std::vector<KvExtent>& before = node.stored > 0 ? node.extents : parent.extents;
  const std::int64_t preferred = before.empty() ? -1 : before.back().first + before.back().length;
  const std::int64_t stored = node.stored;
  arena_.Allocate(count, preferred, node.extents);
  node.stored += count;
  if (node.pinned) pinned_slots_ += count;
  if (stored == 0 && parent_id != 0) {
    ++tree_.Wake(parent_id).stored_children;
    Update(parent_id);
  }
  CountHeld(id, stored);
  Update(id);
}

void KvCache::Drop(KvId id) {
  if (tree_.state(id).stored == 0) return;
  KvState& state = tree_.Wake(id);
  QUAIL_CHECK_EQ(state.stored_children, 0U);
  const std::int64_t stored = state.stored;
  for (const KvExtent& extent : state.extents) arena_.Free(extent);
  state.extents.clear();
  if (state.pinned) pinned_slots_ -= stored;
  state.stored = 0;
  CountHeld(id, stored);
  Update(id);
  if (const KvId parent = tree_[id].parent; parent != 0) {
    --tree_.Wake(parent).stored_children;
    Update(parent);
  }
  tree_.Rest(id);
}

void KvCache::DropAll() {
  EndChunk();
  for (KvId id = 0; id < tree_.size(); ++id) {
    if (tree_[id].chance > 0) SetChance(id, 0);
  }
  while (!order_.empty()) Drop(order_.first().id);
  QUAIL_CHECK_EQ(arena_.free_slots(), arena_.slots());
}

void KvCache::Remove(KvId id) {
  ForgetFresh(id);
  if (tree_.state(id).pinned) {
    removed_.push_back(id);
    return;
  }
  Drop(id);
  tree_.Remove(id);
}

KvId KvCache::Split(KvId id, std::uint32_t length) {
  if (tree_[id].state == 0) return tree_.Split(id, length);
  KvState& state = tree_.Wake(id);
  if (state.evictable()) order_.Erase(id);
  if (state.counted_held) held_ -= state.stored;
  state.counted_held = false;
  const KvId upper = tree_.Split(id, length);
  if (state.pinned) pinned_.push_back(upper);
  if (state.listed_fresh) {
    tree_.Wake(upper).listed_fresh = true;
    fresh_.insert(std::find(fresh_.begin(), fresh_.end(), id), upper);
  }
  for (const KvId part : {upper, id}) {
    tree_.Wake(part).want_stamp = 0;
    CountHeld(part, 0);
    Update(part);
  }
  return upper;
}

void KvCache::TakeEvicted(std::vector<KvId>& evicted) {
  evicted.clear();
  evicted.swap(evicted_);
}

}  // namespace quail::infer
