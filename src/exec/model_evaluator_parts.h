#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/model_evaluator.h"

/// What the source files of ModelEvaluator share.
namespace quail::exec {

/// The one question about a document.
class OneLeaf : public infer::ChildSource {
 public:
  explicit OneLeaf(std::span<const base::TokenId> tokens) : tokens_(tokens) {}
  std::uint64_t upper_bound() const override { return given_ ? 0 : 1; }
  void Next(std::size_t n, std::vector<infer::Leaf>& leaves) override {
    if (given_ || n == 0) return;
    leaves.push_back({.index = 0, .tokens = tokens_, .stable = true});
    given_ = true;
  }

 private:
  std::span<const base::TokenId> tokens_;
  bool given_ = false;
};

/// The tokens that follow an anchor, for each partner of a list.
struct ModelEvaluator::LeafTokens {
  std::vector<base::TokenId> tokens;
  std::vector<std::size_t> begins;  ///< [partners + 1]
  std::vector<std::string> faults;  ///< [partners], empty where there is none
  bool any_fault = false;
  std::size_t longest = 0;  ///< tokens of the longest leaf

  std::span<const base::TokenId> leaf(std::size_t i) const {
    return std::span(tokens).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

struct ModelEvaluator::Prepared {
  Question question;
  text::FilterPrompt filter;
  text::JoinPrompt join;
  std::span<const base::TokenId> filter_leaf;  ///< in `filter_leaves_`
  std::shared_ptr<const PartnerList> list;     ///< of `leaves`
  std::shared_ptr<const LeafTokens> leaves;
};

/// Partners of one anchor, from the list that all anchors share.
template <typename Leaves>
class PartnerLeaves : public infer::ChildSource {
 public:
  PartnerLeaves(std::shared_ptr<const Leaves> leaves, std::vector<std::uint32_t> subset,
                std::size_t count)
      : leaves_(std::move(leaves)), subset_(std::move(subset)), count_(count) {}

  std::uint64_t upper_bound() const override { return count_ - next_; }
  void Next(std::size_t n, std::vector<infer::Leaf>& leaves) override {
    for (; n > 0 && next_ < count_; --n, ++next_) {
      const std::size_t partner = subset_.empty() ? next_ : subset_[next_];
      leaves.push_back({.index = partner, .tokens = leaves_->leaf(partner)});
    }
  }

 private:
  std::shared_ptr<const Leaves> leaves_;
  std::vector<std::uint32_t> subset_;  ///< empty: all
  std::size_t count_;
  std::size_t next_ = 0;
};

/// Partners with leaves of their own, cut for one anchor.
template <typename Leaves>
class CutLeaves : public infer::ChildSource {
 public:
  CutLeaves(std::shared_ptr<const Leaves> leaves, std::vector<std::uint32_t> partners)
      : leaves_(std::move(leaves)), partners_(std::move(partners)) {}

  std::uint64_t upper_bound() const override { return partners_.size() - next_; }
  void Next(std::size_t n, std::vector<infer::Leaf>& leaves) override {
    for (; n > 0 && next_ < partners_.size(); --n, ++next_) {
      leaves.push_back({.index = partners_[next_], .tokens = leaves_->leaf(next_)});
    }
  }

 private:
  std::shared_ptr<const Leaves> leaves_;
  std::vector<std::uint32_t> partners_;
  std::size_t next_ = 0;
};

}  // namespace quail::exec
