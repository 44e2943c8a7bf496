#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/baseline/request_queue.h"
#include "infer/counting/counting_backend.h"
#include "infer/prompt_forest.h"

namespace quail::infer {

using Tokens = std::vector<TokenId>;

inline Tokens MakeTokens(std::initializer_list<int> ids) {
  Tokens tokens;
  for (const int id : ids) tokens.emplace_back(id);
  return tokens;
}

/// `count` tokens drawn from a stream of their own: two names never agree for long.
inline Tokens TokensOf(std::uint64_t name, std::size_t count) {
  Tokens tokens;
  std::uint64_t state = name * 0x9e3779b97f4a7c15ULL + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    tokens.emplace_back(static_cast<std::int32_t>(state >> 45));
  }
  return tokens;
}

inline Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Leaves from a list that outlives the source.
class ListSource final : public ChildSource {
 public:
  /// `slack`: how much the upper bound is above the truth until the end.
  explicit ListSource(const std::vector<Tokens>& leaves, std::uint64_t slack = 0)
      : leaves_(leaves), slack_(slack) {}
  std::uint64_t upper_bound() const override { return leaves_.size() - next_ + slack_; }
  void Next(std::size_t n, std::vector<Leaf>& leaves) override {
    for (; n > 0 && next_ < leaves_.size(); --n, ++next_) leaves.push_back({next_, leaves_[next_]});
  }

 private:
  const std::vector<Tokens>& leaves_;
  std::uint64_t slack_;
  std::size_t next_ = 0;
};

struct HarnessOptions {
  std::int64_t kv_tokens = 1 << 20;
  std::int32_t chunk_tokens = 512;
  std::int32_t context_tokens = 1 << 16;
  RadixMode radix = RadixMode::kWherePays;
  std::int32_t kv_alignment = 1;
  bool validate = true;
  bool keep_for_later = false;
  bool request_queue = false;  ///< the control in place of the forest
};

/// Distinct tokens among `paths`, each with all its prefixes, by sorting: independent of the
/// forest's own count.
inline std::uint64_t DistinctTokens(std::vector<Tokens> paths) {
  std::sort(paths.begin(), paths.end());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::size_t common = 0;
    if (i > 0) {
      const std::size_t shorter = std::min(paths[i].size(), paths[i - 1].size());
      while (common < shorter && paths[i][common] == paths[i - 1][common]) ++common;
    }
    total += paths[i].size() - common;
  }
  return total;
}

/// A forest over the validating counting backend, which knows the path of every ask.
class Harness {
 public:
  explicit Harness(const HarnessOptions& options)
      : Harness(options, CountingOptions{.kv_alignment = options.kv_alignment,
                                         .validate = options.validate}) {}
  Harness(const HarnessOptions& options, CountingOptions counting)
      : backend(std::move(counting)), model(spec::ModelSpec{}) {
    backend.ReserveKv({}, options.kv_tokens);
    ForestConfig config;
    config.kv_tokens = options.kv_tokens;
    config.chunk_tokens = options.chunk_tokens;
    config.context_tokens = options.context_tokens;
    config.radix = options.radix;
    config.keep_for_later = options.keep_for_later;
    config.true_rows = 1;
    config.answer_rows = 2;
    forest = options.request_queue ? CreateRequestQueue(model, backend, config)
                                   : PromptForest::Create(model, backend, config);
    paths_[0] = {};
  }

  NodeId root() const { return forest->root(); }

  NodeId Child(NodeId parent, const Tokens& tokens) {
    kept_.push_back(tokens);
    const NodeId node = forest->Child(parent, forest->Segment(kept_.back()));
    paths_[node.value()] = paths_[parent.value()] + tokens;
    return node;
  }

  SourceId Ask(NodeId parent, const std::vector<Tokens>& leaves, SourceOptions options = {},
               std::uint64_t slack = 0) {
    lists_.push_back(leaves);
    const SourceId source =
        forest->Add(parent, std::make_unique<ListSource>(lists_.back(), slack), options);
    asked_[source.value()] = {parent, &lists_.back(), options.readout};
    return source;
  }

  const Tokens& path(NodeId node) { return paths_[node.value()]; }
  Tokens PathOf(const Answer& answer) {
    const Asked& asked = asked_.at(answer.source.value());
    return paths_[asked.node.value()] + (*asked.leaves)[answer.index];
  }
  /// What the backend must have answered.
  float Expected(const Answer& answer) {
    const Asked& asked = asked_.at(answer.source.value());
    const Tokens path = PathOf(answer);
    if (asked.readout == ReadoutKind::kTrueFalseMargin) return CountingMargin(PathHash(path));
    const std::size_t label = (*asked.leaves)[answer.index].size();
    double sum = 0;
    for (std::size_t i = path.size() - label + 1; i < path.size(); ++i) {
      sum +=
          static_cast<double>(CountingLogProb(PathHash(std::span(path).first(i)), path[i].value()));
    }
    return static_cast<float>(sum);
  }

  /// One step; the answers of it.
  std::vector<Answer> Step(const base::CancelFlag* cancel = nullptr) {
    std::vector<Answer> answers;
    more = forest->Next(answers, cancel);
    return answers;
  }
  std::vector<Answer> RunAll() {
    std::vector<Answer> all;
    do {
      const std::vector<Answer> answers = Step();
      all.insert(all.end(), answers.begin(), answers.end());
    } while (more);
    return all;
  }

  std::uint64_t fresh() const {
    std::uint64_t tokens = 0;
    for (const auto& step : forest->counters().steps) tokens += step.fresh_tokens;
    return tokens;
  }
  std::uint64_t recomputed() const {
    std::uint64_t tokens = 0;
    for (const auto& step : forest->counters().steps) tokens += step.recomputed_tokens;
    return tokens;
  }
  std::uint64_t minimum() const { return forest->counters().minimum_tokens; }

  CountingBackend backend;
  CountingModel model;
  std::unique_ptr<PromptForest> forest;
  bool more = true;

 private:
  struct Asked {
    NodeId node;
    const std::vector<Tokens>* leaves = nullptr;
    ReadoutKind readout = ReadoutKind::kTrueFalseMargin;
  };

  std::deque<Tokens> kept_;
  std::deque<std::vector<Tokens>> lists_;
  std::map<std::uint32_t, Tokens> paths_;
  std::map<std::uint32_t, Asked> asked_;
};

}  // namespace quail::infer
