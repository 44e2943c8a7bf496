#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/strong_id.h"

namespace quail::exec {

/// The prompts that were asked, as token paths, to count the distinct tokens among them by sorting:
/// a second opinion on the forest's own count (infer/path_trie). A path is a stem, which many asks
/// share, and a leaf. Tokens are not copied.
class AskedPaths {
 public:
  using Tokens = std::span<const base::TokenId>;
  using Stem = std::uint32_t;

  /// A path's tokens but the leaf's, in pieces.
  Stem AddStem(std::vector<Tokens> pieces);
  void Add(Stem stem, Tokens leaf);
  /// Keeps the owner of some leaves alive.
  void Hold(std::shared_ptr<const void> owner);

  /// Each distinct path prefix once.
  std::uint64_t CountDistinctTokens() const;

 private:
  struct Ask {
    std::uint32_t stem = 0;
    std::uint32_t leaf = 0;
  };

  std::vector<std::vector<Tokens>> stems_;
  std::vector<Tokens> leaves_;
  std::unordered_map<const base::TokenId*, std::uint32_t> leaf_of_;
  std::vector<Ask> asks_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace quail::exec
