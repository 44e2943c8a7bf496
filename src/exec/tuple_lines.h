#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exec/tuple_index.h"

namespace quail::exec {

/// Items that wait in line for distinct tuples, first come first served. Takes 4 bytes an item, and
/// for up to twice as many tuples as are waited for what TupleIndex takes and 8 bytes. An item
/// waits in one line at the most.
class TupleLines {
 public:
  /// `width`: texts of a tuple. Items are below `items`.
  TupleLines(std::size_t width, std::size_t items) : tuples_(width), next_(items, kNone) {}

  /// Items in all lines.
  std::size_t size() const { return size_; }
  /// Puts an item at the end of the tuple's line; true when it is the first there.
  bool Add(std::span<const TextId> tuple, std::uint32_t item) {
    if (lines_.size() >= 2 * open_ + kSpare) DropEmptyLines();
    const std::uint32_t number = tuples_.Add(tuple);
    if (number == lines_.size()) lines_.emplace_back();
    Line& line = lines_[number];
    const bool first = line.first == kNone;
    (first ? line.first : next_[line.last]) = item;
    line.last = item;
    ++size_;
    open_ += first ? 1 : 0;
    return first;
  }
  /// Empties the tuple's line and calls each(item) in order; false when nobody is there. `each` may
  /// add to other lines.
  template <typename Each>
  bool Take(std::span<const TextId> tuple, Each each) {
    const std::uint32_t number = tuples_.Find(tuple);
    if (number == TupleIndex::kAbsent || lines_[number].first == kNone) return false;
    TakeLine(number, each);
    return true;
  }
  /// Empties all lines. `each` adds nothing.
  template <typename Each>
  void TakeAll(Each each) {
    for (std::size_t number = 0; number < lines_.size(); ++number) TakeLine(number, each);
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;
  static constexpr std::size_t kSpare = 1024;
  struct Line {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  template <typename Each>
  void TakeLine(std::size_t number, Each& each) {
    open_ -= lines_[number].first == kNone ? 0 : 1;
    for (std::uint32_t item = std::exchange(lines_[number].first, kNone); item != kNone;) {
      --size_;
      each(std::exchange(item, std::exchange(next_[item], kNone)));
    }
  }

  void DropEmptyLines() {
    TupleIndex tuples(tuples_.width());
    std::vector<Line> lines;
    for (std::size_t number = 0; number < lines_.size(); ++number) {
      if (lines_[number].first == kNone) continue;
      tuples.Add(tuples_.tuple(number));
      lines.push_back(lines_[number]);
    }
    tuples_ = std::move(tuples);
    lines_ = std::move(lines);
  }

  TupleIndex tuples_;
  std::vector<Line> lines_;          ///< index = number of the tuple
  std::vector<std::uint32_t> next_;  ///< index = item
  std::size_t size_ = 0;
  std::size_t open_ = 0;  ///< lines that are not empty
};

}  // namespace quail::exec
