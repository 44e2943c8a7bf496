#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "infer/kv_tree.h"

namespace quail::infer {

/// Nodes whose KV may be dropped, first to go first: a binary heap (Williams 1964) of which each
/// node knows its place.
class EvictionOrder {
 public:
  explicit EvictionOrder(KvTree& tree) : tree_(tree) {}

  /// What a node is ordered by, then by `id`.
  struct Entry {
    std::uint8_t want_class = 0;
    float value = 0;
    std::int64_t stamp = 0;
    KvId id = 0;

    auto operator<=>(const Entry&) const = default;
  };

  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }
  /// Inserts the node as its state says. REQUIRES: it is not in the order.
  void Insert(KvId id);
  void Erase(KvId id);

 private:
  /// Moves the entry up or down from a free place to where it belongs.
  void Settle(std::size_t place, const Entry& entry);
  void Put(std::size_t place, const Entry& entry);

  KvTree& tree_;
  std::vector<Entry> heap_;
};

}  // namespace quail::infer
