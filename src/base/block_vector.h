#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace quail::base {

/// A list that grows by blocks: elements never move, and growing needs no second copy of all.
template <typename T>
class BlockVector {
 public:
  T& operator[](std::size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const T& operator[](std::size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  std::size_t size() const { return size_; }

  /// Appends a default value.
  T& Append() {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<T[]>(kBlock));
    return (*this)[size_++];
  }

 private:
  static constexpr std::size_t kBlock = 512;

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace quail::base
