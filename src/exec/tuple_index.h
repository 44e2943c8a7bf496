#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/strong_id.h"

namespace quail::exec {

using base::TextId;

/// Numbers distinct tuples of texts from 0 by first appearance: 4 bytes a text and 8 to 16 bytes of
/// hash table a tuple.
class TupleIndex {
 public:
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFFU;

  explicit TupleIndex(std::size_t width);

  std::size_t size() const { return size_; }
  std::size_t width() const { return width_; }
  std::span<const TextId> tuple(std::size_t i) const {
    return std::span(ids_).subspan(i * width_, width_);
  }
  /// The tuple's number, or kAbsent. REQUIRES: tuple.size() == width(), as Add.
  std::uint32_t Find(std::span<const TextId> tuple) const;
  /// The tuple's number, size() before the call where it is new.
  std::uint32_t Add(std::span<const TextId> tuple);
  /// All tuples in order, [size, width]; the index is empty afterwards.
  std::vector<TextId> TakeIds();

 private:
  std::size_t SlotOf(std::span<const TextId> tuple) const;
  void Grow();

  std::size_t width_;
  std::size_t size_ = 0;
  std::vector<TextId> ids_;
  std::vector<std::uint32_t> slots_;  ///< open addressing: 1 + the tuple's number, 0 when free
};

}  // namespace quail::exec
