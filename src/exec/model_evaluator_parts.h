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

/// The tokens that follow an anchor, for each partner of a list or some of them.
struct ModelEvaluator::LeafTokens {
  std::vector<base::TokenId> tokens;
  std::vector<std::size_t> begins{0};  ///< [leaves + 1]
  std::vector<std::string> faults;     ///< [leaves], empty where there is none
  bool any_fault = false;
  std::size_t longest = 0;  ///< tokens of the longest leaf

  /// Of leaves that are cut for one anchor: their places in the partners' list, else empty.
  std::vector<std::uint32_t> partners;

  std::size_t size() const { return begins.size() - 1; }
  std::span<const base::TokenId> leaf(std::size_t i) const {
    return std::span(tokens).subspan(begins[i], begins[i + 1] - begins[i]);
  }
  std::size_t partner(std::size_t leaf) const { return partners.empty() ? leaf : partners[leaf]; }
};

struct ModelEvaluator::Prepared {
  Question question;
  text::FilterPrompt filter;
  text::JoinPrompt join;
  std::span<const base::TokenId> filter_leaf;  ///< in `filter_leaves_`
  std::shared_ptr<const PartnerList> list;     ///< of `leaves`
  std::shared_ptr<const LeafTokens> leaves;
};

/// Partners of one anchor: all of a list that anchors share, or those that are named.
class ModelEvaluator::PartnerLeaves : public infer::ChildSource {
 public:
  PartnerLeaves(std::shared_ptr<const LeafTokens> leaves, std::vector<std::uint32_t> named)
      : leaves_(std::move(leaves)), named_(std::move(named)) {}

  std::uint64_t upper_bound() const override { return count() - next_; }
  void Next(std::size_t n, std::vector<infer::Leaf>& leaves) override {
    for (; n > 0 && next_ < count(); --n, ++next_) {
      const std::size_t leaf = named_.empty() ? next_ : named_[next_];
      leaves.push_back({.index = leaves_->partner(leaf), .tokens = leaves_->leaf(leaf)});
    }
  }

 private:
  std::size_t count() const { return named_.empty() ? leaves_->size() : named_.size(); }

  std::shared_ptr<const LeafTokens> leaves_;
  std::vector<std::uint32_t> named_;  ///< leaves; empty: all
  std::size_t next_ = 0;
};

}  // namespace quail::exec
