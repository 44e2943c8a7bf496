#include "infer/node_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash128.h"

namespace quail::infer {
namespace {

/// Longer runs are documents: to hash and look up each costs more than its entry, and whoever asks
/// about one again has its segment. Shorter ones are mostly the constant pieces of prompts.
constexpr std::size_t kInternedTokens = 64;

}  // namespace

NodeTable::NodeTable(PathTrie& trie, KvTree& tree, KvCache& cache, ReadyOrder& order,
                     RadixMode radix)
    : trie_(trie), tree_(tree), cache_(cache), order_(order), radix_(radix) {
  nodes_.Append();
  trie_.SetName(PathTrie::kRoot, 0);
}

SegmentId NodeTable::Intern(std::span<const TokenId> tokens) {
  return SegmentId(InternTokens(tokens, false));
}

std::uint32_t NodeTable::InternTokens(std::span<const TokenId> tokens, bool copy) {
  if (!copy && tokens.size() > kInternedTokens) return AppendSegment(tokens);
  const std::uint64_t hash = base::HashBytes(std::as_bytes(tokens)).low;
  const std::uint32_t first = segment_of_hash_.Find(hash);
  for (std::uint32_t id = first; id != base::FlatIndex::kNone; id = segments_[id].same_key) {
    const std::span<const TokenId> known(segments_[id].tokens, segments_[id].length);
    if (known.data() == tokens.data() && known.size() == tokens.size()) return id;
    if (std::ranges::equal(known, tokens)) return id;
  }
  if (copy) {
    copies_.push_back(std::make_unique<TokenId[]>(tokens.size()));
    std::copy(tokens.begin(), tokens.end(), copies_.back().get());
    tokens = {copies_.back().get(), tokens.size()};
  }
  const std::uint32_t id = AppendSegment(tokens);
  segments_[id].same_key = first;
  segment_of_hash_.Put(hash, id);
  return id;
}

std::uint32_t NodeTable::AppendSegment(std::span<const TokenId> tokens) {
  const auto id = static_cast<std::uint32_t>(segments_.size());
  SegmentTokens& segment = segments_.Append();
  segment.tokens = tokens.data();
  segment.length = static_cast<std::uint32_t>(tokens.size());
  return id;
}

std::uint32_t NodeTable::Child(std::uint32_t parent, SegmentId id) {
  QUAIL_CHECK_LT(id.value(), segments_.size());
  SegmentTokens& segment = segments_[id.value()];
  if (segment.length == 0) return parent;
  if (segment.last_parent != parent) {
    segment.last_child = Name(parent, {segment.tokens, segment.length});
    segment.last_parent = parent;
  }
  return segment.last_child;
}

std::uint32_t NodeTable::Name(std::uint32_t parent, std::span<const TokenId> tokens) {
  const PathTrie::Found found =
      trie_.Insert(nodes_[parent].position, tokens, PathTrie::Keep::kStable);
  const std::uint32_t known = trie_.name(found.position);
  if (known != PathTrie::kNone) return known;
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  NamedNode& node = nodes_.Append();
  node.position = found.position;
  node.depth = nodes_[parent].depth + static_cast<std::uint32_t>(tokens.size());
  node.kv = Attach(nodes_[parent], found, tokens);
  node.parent = parent;
  node.next_sibling = nodes_[parent].first_child;
  nodes_[parent].first_child = id;
  trie_.SetName(found.position, id);
  return id;
}

KvId NodeTable::AttachLeaf(std::uint32_t node, std::span<const TokenId> tokens) {
  const SegmentTokens& segment = segments_[InternTokens(tokens, true)];
  const std::span<const TokenId> kept(segment.tokens, segment.length);
  const PathTrie::Found found = trie_.Insert(nodes_[node].position, kept, PathTrie::Keep::kStable);
  return Attach(nodes_[node], found, kept);
}

bool NodeTable::Pays(std::uint32_t known, std::uint32_t rest, KvId mark,
                     std::uint32_t depth) const {
  const std::uint64_t saved = 3 * std::uint64_t{known};
  if (saved <= SpanThirds(rest)) return false;  // most often, and without a look at other nodes
  return saved > SpanThirds(rest) + SpanThirds(tree_[tree_.Locate(mark, depth)].end() - depth);
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
    const std::uint32_t depth = from.depth + found.known;
    if (radix_ == RadixMode::kAlways ||
        Pays(found.known, length - found.known, found.mark, depth)) {
      KvId holder = tree_.Locate(found.mark, depth);
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
