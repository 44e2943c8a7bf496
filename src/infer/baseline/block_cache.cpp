#include "infer/baseline/block_cache.h"

#include "base/check.h"

namespace quail::infer {

BlockCache::BlockCache(std::int64_t slots)
    : blocks_(static_cast<std::size_t>(slots / kBlockTokens)) {
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) Append(i);
}

void BlockCache::Append(std::uint32_t block) {
  blocks_[block].previous = last_free_;
  blocks_[block].next = kNone;
  (last_free_ == kNone ? first_free_ : blocks_[last_free_].next) = block;
  last_free_ = block;
}

void BlockCache::Unlink(std::uint32_t block) {
  const Block& unlinked = blocks_[block];
  (unlinked.previous == kNone ? first_free_ : blocks_[unlinked.previous].next) = unlinked.next;
  (unlinked.next == kNone ? last_free_ : blocks_[unlinked.next].previous) = unlinked.previous;
}

std::optional<std::uint32_t> BlockCache::Find(const base::Hash128& hash) {
  const auto found = block_of_.find(hash);
  if (found == block_of_.end()) return std::nullopt;
  Block& block = blocks_[found->second];
  if (block.uses++ == 0) {
    Unlink(found->second);
    ++used_;
  }
  return found->second;
}

std::optional<std::uint32_t> BlockCache::Take() {
  if (first_free_ == kNone) return std::nullopt;
  const std::uint32_t id = first_free_;
  Unlink(id);
  Block& block = blocks_[id];
  if (block.named) {
    block_of_.erase(block.hash);
    block.named = false;
    ++evictions_;
  }
  block.uses = 1;
  ++used_;
  return id;
}

void BlockCache::Name(std::uint32_t block, const base::Hash128& hash) {
  if (!block_of_.try_emplace(hash, block).second) return;
  blocks_[block].hash = hash;
  blocks_[block].named = true;
}

void BlockCache::Release(std::uint32_t block) {
  QUAIL_CHECK(blocks_[block].uses > 0);
  if (--blocks_[block].uses > 0) return;
  --used_;
  Append(block);
}

}  // namespace quail::infer
