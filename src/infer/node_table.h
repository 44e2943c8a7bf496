#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/block_vector.h"
#include "infer/kv_cache.h"
#include "infer/kv_tree.h"
#include "infer/path_trie.h"
#include "infer/prompt_forest.h"
#include "infer/ready_order.h"

namespace quail::infer {

/// A path that the caller has named: a NodeId.
struct NamedNode {
  PathTrie::Position position = PathTrie::kRoot;
  std::uint32_t depth = 0;  ///< tokens of the path
  KvId kv = 0;
  std::uint32_t parent = PathTrie::kNone;
  std::uint32_t first_child = PathTrie::kNone;
  std::uint32_t next_sibling = PathTrie::kNone;
  std::uint32_t first_source = kNoSource;
};

/// What another key span costs a run, in thirds of a token of compute: one for every started 64
/// rows, a key tile that is half empty. At Qwen3-4B 64 rows x 32 idle keys are 1.2 GFLOP in bf16, a
/// token's products 7.2 GFLOP in fp8 at twice the rate: 0.34 tokens.
constexpr std::uint64_t SpanThirds(std::uint64_t rows) { return (rows + 63) / 64; }

/// Segments and named nodes by content, and where the KV of each lies in the tree (radix sharing).
class NodeTable {
 public:
  NodeTable(PathTrie& trie, KvTree& tree, KvCache& cache, ReadyOrder& order, RadixMode radix);

  NamedNode& operator[](std::uint32_t node) { return nodes_[node]; }
  const NamedNode& operator[](std::uint32_t node) const { return nodes_[node]; }
  std::size_t size() const { return nodes_.size(); }

  SegmentId Intern(std::span<const TokenId> tokens);
  std::uint32_t Child(std::uint32_t parent, SegmentId id);
  /// The KV node that ends with `tokens` after `node`; the tokens are copied.
  KvId AttachLeaf(std::uint32_t node, std::span<const TokenId> tokens);

 private:
  struct SegmentTokens {
    const TokenId* tokens = nullptr;
    std::uint32_t length = 0;
    std::uint32_t same_key = base::FlatIndex::kNone;  ///< next segment with the same hash
    // The last child that was made or found of it: a document stands under one parent.
    std::uint32_t last_parent = PathTrie::kNone;
    std::uint32_t last_child = PathTrie::kNone;
  };

  std::uint32_t InternTokens(std::span<const TokenId> tokens, bool copy);
  std::uint32_t AppendSegment(std::span<const TokenId> tokens);
  std::uint32_t Name(std::uint32_t parent, std::span<const TokenId> tokens);
  KvId Attach(const NamedNode& from, const PathTrie::Found& found, std::span<const TokenId> tokens);
  /// A node of its own under `parent`, or under a copy of it: a short beginning, as the label that
  /// opens every document, is computed again where that costs less than one more span for all rows.
  KvId AddAlone(KvId parent, std::span<const TokenId> tokens);
  /// Whether to compute the first `known` tokens with others', where the node of `mark` that holds
  /// the last of them is cut if it goes on beyond `depth`.
  bool Pays(std::uint32_t known, std::uint32_t rest, KvId mark, std::uint32_t depth) const;

  PathTrie& trie_;
  KvTree& tree_;
  KvCache& cache_;
  ReadyOrder& order_;
  RadixMode radix_;
  base::BlockVector<NamedNode> nodes_;
  base::BlockVector<SegmentTokens> segments_;
  base::FlatIndex segment_of_hash_;
  std::vector<std::unique_ptr<TokenId[]>> copies_;
};

}  // namespace quail::infer
