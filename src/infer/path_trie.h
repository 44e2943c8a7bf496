#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/block_vector.h"
#include "base/flat_index.h"
#include "base/strong_id.h"

namespace quail::infer {

using base::TokenId;

/// Every path that was named or asked, as a radix tree over tokens, whatever segments it was made
/// of: the identity of paths, and the count of distinct tokens among those asked. It knows nothing
/// of KV or of the order of work.
class PathTrie {
 public:
  using Position = std::uint32_t;
  static constexpr Position kRoot = 0;
  static constexpr std::uint32_t kNone = base::FlatIndex::kNone;

  enum class Keep : std::uint8_t {
    kStable,  ///< the tokens outlive the trie
    kCopy,    ///< the tokens are copied, and forgotten some time after Retire(from)
  };
  struct Found {
    Position position = kRoot;
    /// A mark (SetMark) on whose path the first `known` of the tokens lie; kNone if there is none.
    std::uint32_t mark = kNone;
    std::uint32_t known = 0;
  };

  PathTrie();

  /// The position of `tokens` after `from`.
  Found Insert(Position from, std::span<const TokenId> tokens, Keep keep);
  std::uint32_t depth(Position position) const { return nodes_[position].depth; }

  /// A number for the whole path to `position`, for those of its prefixes that have none yet.
  void SetMark(Position position, std::uint32_t mark);
  std::uint32_t name(Position position) const { return nodes_[position].name; }
  void SetName(Position position, std::uint32_t name) { nodes_[position].name = name; }

  /// Counts the tokens on the path to `position` that no path counted since the last Forget had.
  std::uint64_t Count(Position position);
  void Forget() { ++epoch_; }

  /// No more paths are copied after `from` for now. Those few after a document are kept, so that a
  /// later question is counted exactly, as long as all fit in kCopyBytes, oldest dropped first.
  /// More than kManyBytes of them, as after an anchor of a join, are dropped at once.
  void Retire(Position from);
  static constexpr std::size_t kCopyBytes = std::size_t{64} << 20;
  static constexpr std::size_t kManyBytes = std::size_t{64} << 10;
  std::size_t copy_bytes() const { return copy_bytes_; }

 private:
  struct Node {
    const TokenId* tokens = nullptr;
    std::uint32_t length = 0;
    std::uint32_t depth = 0;  ///< tokens from the root to this node's end
    Position parent = kRoot;
    Position first_child = kNone;
    Position next = kNone;
    Position previous = kNone;
    std::uint32_t epoch = 0;  ///< counted in this epoch
    std::uint32_t mark = kNone;
    std::uint32_t name = kNone;
    bool copied = false;
    bool indexed = false;  ///< its children are in the index: there were two of them
  };
  struct Copies {
    std::unique_ptr<TokenId[]> block;  ///< that is being filled
    std::vector<std::unique_ptr<TokenId[]>> full;
    std::size_t used = 0;
    std::size_t capacity = 0;
    std::size_t bytes = 0;
  };

  Position FindChild(Position parent, TokenId token) const;
  Position Make(Position parent, std::span<const TokenId> tokens, bool copied);
  Position Split(Position position, std::uint32_t length);
  void Link(Position parent, Position child);
  void Unlink(Position child);
  const TokenId* Copy(Position from, std::span<const TokenId> tokens);
  Copies& CopiesOf(Position from);
  void Drop(Position from);
  void RemoveCopied(Position position);
  static std::uint64_t Key(Position parent, TokenId token) {
    return (std::uint64_t{parent} << 32) | static_cast<std::uint32_t>(token.value());
  }

  base::BlockVector<Node> nodes_;
  std::vector<Position> unused_;
  base::FlatIndex children_;
  base::BlockVector<Copies> copies_;
  std::vector<std::uint32_t> unused_copies_;
  base::FlatIndex copies_of_;  ///< by the position that they follow
  std::deque<Position> retired_;
  std::size_t copy_bytes_ = 0;
  std::uint32_t epoch_ = 1;
};

/// Length of the longest common prefix.
std::uint32_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace quail::infer
