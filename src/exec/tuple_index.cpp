#include "exec/tuple_index.h"

#include <algorithm>

#include "base/check.h"

namespace quail::exec {
namespace {

constexpr std::size_t kFirstSlots = 16;

/// Texts get their ids as they come, so that tuples come in runs of close ids: runs of 16 stay
/// together, one cache line of slots.
std::uint64_t Hash(std::span<const TextId> tuple) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  std::uint64_t last = 0;
  for (const TextId id : tuple) {
    hash = (hash ^ last) * 0xD6E8FEB86659FD93ULL;
    hash ^= hash >> 32;
    last = id.value();
  }
  hash = (hash ^ (last >> 4)) * 0xD6E8FEB86659FD93ULL;
  return ((hash >> 28) << 4) | (last & 15);
}

}  // namespace

TupleIndex::TupleIndex(std::size_t width) : width_(width), slots_(kFirstSlots, 0) {}

std::size_t TupleIndex::SlotOf(std::span<const TextId> tuple) const {
  QUAIL_DCHECK(tuple.size() == width_);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = Hash(tuple) & mask;
  while (slots_[slot] != 0 && !std::ranges::equal(this->tuple(slots_[slot] - 1), tuple)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

std::uint32_t TupleIndex::Find(std::span<const TextId> tuple) const {
  const std::uint32_t entry = slots_[SlotOf(tuple)];
  return entry == 0 ? kAbsent : entry - 1;
}

std::uint32_t TupleIndex::Add(std::span<const TextId> tuple) {
  std::size_t slot = SlotOf(tuple);
  if (slots_[slot] != 0) return slots_[slot] - 1;
  QUAIL_CHECK_LT(size_ + 1, std::size_t{kAbsent});
  if ((size_ + 1) * 2 > slots_.size()) {
    Grow();
    slot = SlotOf(tuple);
  }
  ids_.insert(ids_.end(), tuple.begin(), tuple.end());
  slots_[slot] = static_cast<std::uint32_t>(++size_);
  return slots_[slot] - 1;
}

void TupleIndex::Grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::size_t i = 0; i < size_; ++i) {
    slots_[SlotOf(tuple(i))] = static_cast<std::uint32_t>(i + 1);
  }
}

std::vector<TextId> TupleIndex::TakeIds() {
  size_ = 0;
  slots_.assign(kFirstSlots, 0);
  return std::exchange(ids_, {});
}

}  // namespace quail::exec
