#include "infer/ready_order.h"

#include <algorithm>

#include "base/check.h"

namespace quail::infer {

ReadyOrder::Buckets& ReadyOrder::GiveList(KvState& node) {
  if (node.ready_children == 0 && unused_lists_.empty()) {
    lists_.Append();
    node.ready_children = static_cast<std::uint32_t>(lists_.size() - 1);
  } else if (node.ready_children == 0) {
    node.ready_children = unused_lists_.back();
    unused_lists_.pop_back();
  }
  return lists_[node.ready_children];
}

void ReadyOrder::TakeList(KvState& node) {
  unused_lists_.push_back(node.ready_children);
  node.ready_children = 0;
}

std::int32_t ReadyOrder::TopPriority(const KvState& node) const {
  const Buckets& children = ChildrenOf(node);
  if (node.first_source == kNoSource) return children.front().priority;
  const std::int32_t own = sources_[node.first_source].priority;
  return children.empty() ? own : std::max(own, children.front().priority);
}

void ReadyOrder::Add(std::uint32_t index) {
  Source& source = sources_[index];
  if (source.ready) return;
  source.ready = true;
  KvState& node = tree_.Wake(source.kv);
  std::uint32_t before = node.last_source;
  while (before != kNoSource && sources_[before].priority < source.priority) {
    before = sources_[before].ready_previous;
  }
  source.ready_previous = before;
  source.ready_next = before == kNoSource ? node.first_source : sources_[before].ready_next;
  (before == kNoSource ? node.first_source : sources_[before].ready_next) = index;
  (source.ready_next == kNoSource ? node.last_source : sources_[source.ready_next].ready_previous) =
      index;
  Refresh(source.kv);
}

void ReadyOrder::Remove(std::uint32_t index) {
  Source& source = sources_[index];
  if (!source.ready) return;
  source.ready = false;
  KvState& node = tree_.Wake(source.kv);
  (source.ready_previous == kNoSource ? node.first_source
                                      : sources_[source.ready_previous].ready_next) =
      source.ready_next;
  (source.ready_next == kNoSource ? node.last_source : sources_[source.ready_next].ready_previous) =
      source.ready_previous;
  Refresh(source.kv);
}

std::uint32_t ReadyOrder::First() const {
  const KvState* node = &tree_.state(0);
  for (;;) {
    const std::uint32_t own = node->first_source;
    if (node->ready_children == 0) return own;
    const ReadyBucket& bucket = ChildrenOf(*node).front();
    if (own != kNoSource &&
        (sources_[own].priority > bucket.priority ||
         (sources_[own].priority == bucket.priority && bucket.started_first == kNoKv))) {
      return own;
    }
    node = &tree_.state(bucket.started_first != kNoKv ? bucket.started_first : bucket.fresh_first);
  }
}

void ReadyOrder::Refresh(KvId id) {
  while (id != 0) {
    const KvState& node = tree_.state(id);
    const bool ready = AnyReady(node);
    const std::int32_t priority = ready ? TopPriority(node) : 0;
    const bool started = node.started();
    if (node.ready == ready &&
        (!ready || (node.ready_priority == priority && node.ready_started == started))) {
      return;
    }
    if (node.ready) Unlink(id);
    if (ready) Link(id, priority, started);
    id = tree_[id].parent;
  }
}

void ReadyOrder::Detach(KvId id) {
  if (tree_.state(id).ready) Unlink(id);
}

void ReadyOrder::Link(KvId id, std::int32_t priority, bool started) {
  KvState& node = tree_.Wake(id);
  Buckets& buckets = GiveList(tree_.Wake(tree_[id].parent));
  auto bucket = buckets.begin();
  while (bucket != buckets.end() && bucket->priority > priority) ++bucket;
  if (bucket == buckets.end() || bucket->priority != priority) {
    bucket = buckets.insert(bucket, ReadyBucket{.priority = priority});
  }
  // A node that lost its KV while it waited goes before those that were never begun.
  const bool in_front = !started && tree_[id].computed_ever > 0;
  KvId& first = started ? bucket->started_first : bucket->fresh_first;
  KvId& last = started ? bucket->started_last : bucket->fresh_last;
  node.ready = true;
  node.ready_priority = priority;
  node.ready_started = started;
  node.ready_previous = in_front ? kNoKv : last;
  node.ready_next = in_front ? first : kNoKv;
  (node.ready_previous == kNoKv ? first : tree_.Wake(node.ready_previous).ready_next) = id;
  (node.ready_next == kNoKv ? last : tree_.Wake(node.ready_next).ready_previous) = id;
}

void ReadyOrder::Unlink(KvId id) {
  KvState& node = tree_.Wake(id);
  KvState& parent = tree_.Wake(tree_[id].parent);
  Buckets& buckets = lists_[parent.ready_children];
  const auto bucket = std::find_if(
      buckets.begin(), buckets.end(),
      [&](const ReadyBucket& candidate) { return candidate.priority == node.ready_priority; });
  QUAIL_CHECK(bucket != buckets.end());
  KvId& first = node.ready_started ? bucket->started_first : bucket->fresh_first;
  KvId& last = node.ready_started ? bucket->started_last : bucket->fresh_last;
  (node.ready_previous == kNoKv ? first : tree_.Wake(node.ready_previous).ready_next) =
      node.ready_next;
  (node.ready_next == kNoKv ? last : tree_.Wake(node.ready_next).ready_previous) =
      node.ready_previous;
  node.ready = false;
  if (bucket->started_first == kNoKv && bucket->fresh_first == kNoKv) buckets.erase(bucket);
  if (buckets.empty()) TakeList(parent);
}

}  // namespace quail::infer
