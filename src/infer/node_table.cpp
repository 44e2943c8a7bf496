#include "infer/node_table.h"

#include <algorithm>

#include "base/check.h"

namespace quail::infer {

NodeTable::NodeTable(PathTrie& trie, KvTree& tree, KvCache& cache, ReadyOrder& order,
                     RadixMode radix)
    : trie_(trie), tree_(tree), cache_(cache), order_(order), radix_(radix), nodes_(1) {
  trie_.SetName(PathTrie::kRoot, 0);
}

SegmentId NodeTable::Intern(std::span<const TokenId> tokens) {
  return SegmentId(InternTokens(tokens, false));
}

std::uint32_t NodeTable::InternTokens(std::span<const TokenId> tokens, bool copy) {
  const base::Hash128 hash = base::HashBytes(std::as_bytes(tokens));
  const std::uint32_t first = segment_of_hash_.Find(hash.low);
  for (std::uint32_t id = first; id != FlatIndex::kNone; id = segments_[id].same_key) {
    if (segments_[id].hash == hash) return id;
  }
  if (copy) {
    copies_.push_back(std::make_unique<TokenId[]>(tokens.size()));
    std::copy(tokens.begin(), tokens.end(), copies_.back().get());
    tokens = {copies_.back().get(), tokens.size()};
  }
  const auto id = static_cast<std::uint32_t>(segments_.size());
  segments_.push_back({hash, tokens, first});
  segment_of_hash_.Put(hash.low, id);
  return id;
}

std::uint32_t NodeTable::Child(std::uint32_t parent, SegmentId segment) {
  QUAIL_CHECK_LT(segment.value(), segments_.size());
  const std::span<const TokenId> tokens = segments_[segment.value()].tokens;
  if (tokens.empty()) return parent;
  const PathTrie::Found found =
      trie_.Insert(nodes_[parent].position, tokens, PathTrie::Keep::kStable);
  const std::uint32_t known = trie_.name(found.position);
  if (known != PathTrie::kNone) return known;
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  NamedNode node;
  node.position = found.position;
  node.kv = Attach(nodes_[parent], found, tokens);
  node.parent = parent;
  node.next_sibling = nodes_[parent].first_child;
  nodes_[parent].first_child = id;
  nodes_.push_back(node);
  trie_.SetName(found.position, id);
  return id;
}

KvId NodeTable::AttachLeaf(std::uint32_t node, std::span<const TokenId> tokens) {
  const std::span<const TokenId> kept = segments_[InternTokens(tokens, true)].tokens;
  const PathTrie::Found found = trie_.Insert(nodes_[node].position, kept, PathTrie::Keep::kStable);
  return Attach(nodes_[node], found, kept);
}

bool NodeTable::Pays(std::uint32_t known, std::uint32_t rest, KvId holder,
                     std::uint32_t depth) const {
  return 3 * std::uint64_t{known} > SpanThirds(rest) + SpanThirds(tree_[holder].end() - depth);
}

KvId NodeTable::AddAlone(KvId parent, std::span<const TokenId> tokens) {
  const KvNode& head = tree_[parent];
  if (radix_ == RadixMode::kWherePays && parent != 0 && head.parent == 0 &&
      3 * std::uint64_t{head.length} < SpanThirds(tokens.size())) {
    parent = tree_.Add(0, {head.tokens, head.length});
  }
  return tree_.Add(parent, tokens);
}

KvId NodeTable::Attach(const NamedNode& from, const PathTrie::Found& found,
                       std::span<const TokenId> tokens) {
  const auto length = static_cast<std::uint32_t>(tokens.size());
  KvId kv = kNoKv;
  if (radix_ != RadixMode::kNever && found.mark != PathTrie::kNone && found.known > 0) {
    const std::uint32_t depth = trie_.depth(found.position) - length + found.known;
    KvId holder = tree_.Locate(found.mark, depth);
    if (radix_ == RadixMode::kAlways || Pays(found.known, length - found.known, holder, depth)) {
      if (depth < tree_[holder].end()) {
        order_.Detach(holder);
        const KvId upper = cache_.Split(holder, depth - tree_[holder].begin);
        order_.Refresh(holder);
        order_.Refresh(upper);
        holder = upper;
      }
      kv = found.known == length ? holder : tree_.Add(holder, tokens.subspan(found.known));
    }
  }
  if (kv == kNoKv) kv = AddAlone(from.kv, tokens);
  trie_.SetMark(found.position, kv);
  return kv;
}

}  // namespace quail::infer
