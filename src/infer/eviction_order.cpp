#include "infer/eviction_order.h"

#include "base/check.h"

namespace quail::infer {

void EvictionOrder::Insert(KvId id) {
  const KvState& state = tree_.state(id);
  QUAIL_DCHECK(!state.evictable());
  heap_.emplace_back();
  Settle(heap_.size() - 1, {state.want_class, state.want_value, state.want_stamp, id});
}

void EvictionOrder::Erase(KvId id) {
  KvState& state = tree_.Wake(id);
  const std::size_t place = state.order_place;
  QUAIL_CHECK(place < heap_.size() && heap_[place].id == id);
  state.order_place = kNotInOrder;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place < heap_.size()) Settle(place, last);
}

void EvictionOrder::Settle(std::size_t place, const Entry& entry) {
  for (; place > 0; place = (place - 1) / 2) {
    const std::size_t above = (place - 1) / 2;
    if (heap_[above] < entry) break;
    Put(place, heap_[above]);
  }
  for (std::size_t below = 2 * place + 1; below < heap_.size(); below = 2 * place + 1) {
    if (below + 1 < heap_.size() && heap_[below + 1] < heap_[below]) ++below;
    if (entry < heap_[below]) break;
    Put(place, heap_[below]);
    place = below;
  }
  Put(place, entry);
}

void EvictionOrder::Put(std::size_t place, const Entry& entry) {
  heap_[place] = entry;
  tree_.Wake(entry.id).order_place = static_cast<std::uint32_t>(place);
}

}  // namespace quail::infer
