#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash128.h"
#include "base/strong_id.h"

namespace quail::infer {

/// Positions of a block of keys and values, the unit of a hash prefix cache.
inline constexpr std::int32_t kBlockTokens = 16;

/// The blocks of a KV arena as a cache of path prefixes, keyed by hash. A block in use is never
/// given away; of the others the one that was released first goes.
class BlockCache {
 public:
  explicit BlockCache(std::int64_t slots);

  /// The block with this hash, which is then in use once more.
  std::optional<std::uint32_t> Find(const base::Hash128& hash);
  /// A block without content, in use; nullopt when all are in use.
  std::optional<std::uint32_t> Take();
  /// From now on `block` is found under `hash`. An earlier block of that hash stays.
  void Name(std::uint32_t block, const base::Hash128& hash);
  void Release(std::uint32_t block);

  std::uint64_t evictions() const { return evictions_; }
  std::int64_t used_blocks() const { return used_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Block {
    base::Hash128 hash;
    bool named = false;
    std::uint32_t uses = 0;
    std::uint32_t previous = kNone;  ///< in the list of free blocks
    std::uint32_t next = kNone;
  };

  void Append(std::uint32_t block);
  void Unlink(std::uint32_t block);

  std::vector<Block> blocks_;
  std::uint32_t first_free_ = kNone;  ///< released first
  std::uint32_t last_free_ = kNone;
  std::unordered_map<base::Hash128, std::uint32_t> block_of_;
  std::uint64_t evictions_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace quail::infer
