#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/block_vector.h"
#include "infer/kv_tree.h"
#include "infer/prompt_forest.h"

namespace quail::infer {

constexpr std::uint32_t kNoGroup = 0xffffffffU;

/// Leaves of a source that were pulled and are being packed.
struct SourceWindow {
  std::vector<Leaf> leaves;  ///< packed from `next` on
  std::uint32_t next = 0;
  std::uint32_t short_leaves = 0;  ///< the first of them, sorted by tokens; the others are long
  KvId target = kNoKv;             ///< the KV node of a leaf that is computed over several chunks
  bool target_private = false;
  std::uint32_t target_scored = 0;  ///< leading tokens of it whose log-probability is on its way
  std::uint64_t target_serial = 0;
};

/// A child source and what of it is under way. Slots of finished sources are reused; ids are not.
struct Source {
  std::unique_ptr<ChildSource> stream;
  std::unique_ptr<SourceWindow> window;  ///< from the first pull on
  std::uint64_t bound = 0;               ///< leaves still to be pulled, at most
  std::uint32_t id = 0;
  std::uint32_t node = 0;  ///< the named node
  KvId kv = 0;
  std::int32_t priority = 0;
  std::uint32_t group = kNoGroup;
  std::uint16_t step = 0;
  ReadoutKind readout = ReadoutKind::kTrueFalseMargin;
  bool ready = false;
  std::uint32_t ready_previous = kNoSource, ready_next = kNoSource;  ///< at its KV node
  std::uint32_t node_previous = kNoSource, node_next = kNoSource;    ///< at its named node

  std::uint32_t in_window() const {
    if (window == nullptr) return 0;
    return static_cast<std::uint32_t>(window->leaves.size()) - window->next;
  }
};

/// Ready children of one priority, each list in the order of service.
struct ReadyBucket {
  std::int32_t priority = 0;
  KvId started_first = kNoKv,
       started_last = kNoKv;  ///< some of their path is computed: they go first
  KvId fresh_first = kNoKv, fresh_last = kNoKv;
};

/// Which source is served next: higher priority first, then depth-first: of a node's children those
/// already begun, in the order they were begun; then its own sources; then the other children as
/// they came. So few subtrees are open at a time, and what follows up on held KV goes before what
/// would need more.
class ReadyOrder {
 public:
  ReadyOrder(KvTree& tree, base::BlockVector<Source>& sources) : tree_(tree), sources_(sources) {
    lists_.Append();
  }

  void Add(std::uint32_t index);
  void Remove(std::uint32_t index);
  /// kNoSource when none is ready.
  std::uint32_t First() const;
  /// Moves `id` among its siblings after a change of what is ready below it, or of what of it is
  /// computed.
  void Refresh(KvId id);
  /// Takes the node from its list before it is cut; Refresh of both parts puts them back.
  void Detach(KvId id);

 private:
  using Buckets = std::vector<ReadyBucket>;  ///< by falling priority

  const Buckets& ChildrenOf(const KvState& node) const { return lists_[node.ready_children]; }
  /// The list of a node that has one, or gets one.
  Buckets& GiveList(KvState& node);
  void TakeList(KvState& node);
  std::int32_t TopPriority(const KvState& node) const;
  static bool AnyReady(const KvState& node) {
    return node.first_source != kNoSource || node.ready_children != 0;
  }
  void Link(KvId id, std::int32_t priority, bool started);
  void Unlink(KvId id);

  KvTree& tree_;
  base::BlockVector<Source>& sources_;
  base::BlockVector<Buckets> lists_;  ///< the first stays empty: of nodes without ready children
  std::vector<std::uint32_t> unused_lists_;
};

}  // namespace quail::infer
