#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "infer/prompt_forest.h"

namespace quail::bench {

/// The leaves of a list, which outlives the source, in order.
class ListSource final : public infer::ChildSource {
 public:
  explicit ListSource(std::span<const std::vector<base::TokenId>> leaves) : leaves_(leaves) {}
  std::uint64_t upper_bound() const override { return leaves_.size() - next_; }
  void Next(std::size_t n, std::vector<infer::Leaf>& leaves) override {
    for (; n > 0 && next_ < leaves_.size(); --n, ++next_) {
      leaves.push_back({.index = next_, .tokens = leaves_[next_]});
    }
  }

 private:
  std::span<const std::vector<base::TokenId>> leaves_;
  std::size_t next_ = 0;
};

}  // namespace quail::bench
