#include "infer/path_trie.h"

#include <algorithm>

#include "base/check.h"

namespace quail::infer {
namespace {

constexpr std::size_t kLargestBlock = 16384;  // tokens
constexpr std::size_t kNodeBytes = 80;        // a node with its index entries

}  // namespace

std::uint32_t CommonPrefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < shorter && a[i] == b[i]) ++i;
  return static_cast<std::uint32_t>(i);
}

PathTrie::PathTrie() { nodes_.Append(); }

PathTrie::Found PathTrie::Insert(Position from, std::span<const TokenId> tokens, Keep keep) {
  Found found{from, kNone, 0};
  std::uint32_t done = 0;
  while (done < tokens.size()) {
    const std::span<const TokenId> rest = tokens.subspan(done);
    Position child = FindChild(found.position, rest[0]);
    if (child == kNone) {
      const bool copied = keep == Keep::kCopy;
      const TokenId* kept = copied ? Copy(from, rest) : rest.data();
      found.position = Make(found.position, {kept, rest.size()}, copied);
      return found;
    }
    const std::uint32_t common = CommonPrefix({nodes_[child].tokens, nodes_[child].length}, rest);
    if (nodes_[child].mark != kNone) {
      found.mark = nodes_[child].mark;
      found.known = done + common;
    }
    if (common < nodes_[child].length) child = Split(child, common);
    if (keep == Keep::kStable && nodes_[child].copied) {
      nodes_[child].tokens = rest.data();
      nodes_[child].copied = false;
    }
    found.position = child;
    done += common;
  }
  return found;
}

PathTrie::Position PathTrie::FindChild(Position parent, TokenId token) const {
  const Node& node = nodes_[parent];
  if (node.indexed) return children_.Find(Key(parent, token));
  const Position only = node.first_child;
  return only != kNone && nodes_[only].tokens[0] == token ? only : kNone;
}

PathTrie::Position PathTrie::Make(Position parent, std::span<const TokenId> tokens, bool copied) {
  Position made;
  if (unused_.empty()) {
    made = static_cast<Position>(nodes_.size());
    QUAIL_CHECK_LT(made, kNone);
    nodes_.Append();
  } else {
    made = unused_.back();
    unused_.pop_back();
    nodes_[made] = Node{};
  }
  Node& node = nodes_[made];
  node.tokens = tokens.data();
  node.length = static_cast<std::uint32_t>(tokens.size());
  node.depth = nodes_[parent].depth + node.length;
  node.copied = copied;
  Link(parent, made);
  return made;
}

void PathTrie::Link(Position parent, Position child) {
  Node& node = nodes_[child];
  Node& above = nodes_[parent];
  node.parent = parent;
  node.previous = kNone;
  node.next = above.first_child;
  if (node.next != kNone) {
    nodes_[node.next].previous = child;
    if (!above.indexed) children_.Put(Key(parent, nodes_[node.next].tokens[0]), node.next);
    above.indexed = true;
  }
  above.first_child = child;
  if (above.indexed) children_.Put(Key(parent, node.tokens[0]), child);
}

void PathTrie::Unlink(Position child) {
  const Node& node = nodes_[child];
  Node& above = nodes_[node.parent];
  if (above.indexed) children_.Erase(Key(node.parent, node.tokens[0]));
  if (node.previous == kNone) {
    above.first_child = node.next;
    if (node.next == kNone) above.indexed = false;
  } else {
    nodes_[node.previous].next = node.next;
  }
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
}

PathTrie::Position PathTrie::Split(Position position, std::uint32_t length) {
  const Position parent = nodes_[position].parent;
  Unlink(position);
  const Position upper = Make(parent, {nodes_[position].tokens, length}, nodes_[position].copied);
  Node& lower = nodes_[position];
  nodes_[upper].epoch = lower.epoch;
  nodes_[upper].mark = lower.mark;
  lower.tokens += length;
  lower.length -= length;
  Link(upper, position);
  return upper;
}

void PathTrie::SetMark(Position position, std::uint32_t mark) {
  for (; position != kRoot && nodes_[position].mark == kNone; position = nodes_[position].parent) {
    nodes_[position].mark = mark;
  }
}

std::uint64_t PathTrie::Count(Position position) {
  std::uint64_t tokens = 0;
  for (; position != kRoot && nodes_[position].epoch != epoch_;
       position = nodes_[position].parent) {
    nodes_[position].epoch = epoch_;
    tokens += nodes_[position].length;
  }
  return tokens;
}

PathTrie::Copies& PathTrie::CopiesOf(Position from) {
  const std::uint32_t known = copies_of_.Find(from);
  if (known != base::FlatIndex::kNone) return copies_[known];
  if (unused_copies_.empty()) {
    copies_.Append();
    unused_copies_.push_back(static_cast<std::uint32_t>(copies_.size() - 1));
  }
  const std::uint32_t made = unused_copies_.back();
  copies_of_.Put(from, made);
  unused_copies_.pop_back();
  return copies_[made];
}

const TokenId* PathTrie::Copy(Position from, std::span<const TokenId> tokens) {
  Copies& copies = CopiesOf(from);
  if (copies.used + tokens.size() > copies.capacity) {
    copies.capacity = std::max(tokens.size(), std::min(kLargestBlock, 2 * copies.capacity));
    if (copies.block != nullptr) copies.full.push_back(std::move(copies.block));
    copies.block = std::make_unique<TokenId[]>(copies.capacity);
    copies.used = 0;
    copies.bytes += copies.capacity * sizeof(TokenId);
    copy_bytes_ += copies.capacity * sizeof(TokenId);
  }
  copies.bytes += kNodeBytes;
  copy_bytes_ += kNodeBytes;
  TokenId* copy = copies.block.get() + copies.used;
  std::copy(tokens.begin(), tokens.end(), copy);
  copies.used += tokens.size();
  return copy;
}

void PathTrie::Retire(Position from) {
  const std::uint32_t copies = copies_of_.Find(from);
  if (copies == base::FlatIndex::kNone) return;
  if (copies_[copies].bytes > kManyBytes) {
    Drop(from);
    return;
  }
  retired_.push_back(from);
  while (copy_bytes_ > kCopyBytes && !retired_.empty()) {
    Drop(retired_.front());
    retired_.pop_front();
  }
}

void PathTrie::Drop(Position from) {
  const std::uint32_t copies = copies_of_.Find(from);
  if (copies == base::FlatIndex::kNone) return;
  std::vector<Position> open{from};
  while (!open.empty()) {
    const Position position = open.back();
    open.pop_back();
    for (Position child = nodes_[position].first_child; child != kNone;) {
      const Position next = nodes_[child].next;
      if (nodes_[child].copied) {
        RemoveCopied(child);
      } else {
        open.push_back(child);
      }
      child = next;
    }
  }
  copy_bytes_ -= copies_[copies].bytes;
  copies_[copies] = Copies{};
  copies_of_.Erase(from);
  unused_copies_.push_back(copies);
}

void PathTrie::RemoveCopied(Position position) {
  Unlink(position);
  std::vector<Position> open{position};
  while (!open.empty()) {
    const Position removed = open.back();
    open.pop_back();
    for (Position child = nodes_[removed].first_child; child != kNone; child = nodes_[child].next) {
      QUAIL_DCHECK(nodes_[child].copied);
      if (nodes_[removed].indexed) children_.Erase(Key(removed, nodes_[child].tokens[0]));
      open.push_back(child);
    }
    unused_.push_back(removed);
  }
}

}  // namespace quail::infer
