#include "infer/baseline/request_queue.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "infer/backend.h"
#include "infer/baseline/block_cache.h"
#include "infer/model.h"
#include "infer/path_trie.h"
#include "infer/readout.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

/// Requests that a step may serve, and leaves pulled from a source at a time.
constexpr std::size_t kMostRequests = 4096;

/// An ask with its whole path, from arrival to answer.
struct Request {
  SourceId source;
  std::uint64_t index = 0;
  std::uint16_t step = 0;
  std::vector<TokenId> path;
  std::vector<base::Hash128> hashes;  ///< of its full blocks
  std::vector<std::uint32_t> blocks;  ///< that hold [0, computed), and those being filled
  std::uint32_t computed = 0;
};

/// Where in the chunk being packed a block's positions are computed; they are in the arena later.
struct FreshBlock {
  std::uint64_t chunk = 0;
  std::int32_t row = 0;
};

class RequestQueue final : public PromptForest {
 public:
  RequestQueue(const Model& model, Backend& backend, const ForestConfig& config)
      : model_(model), backend_(backend), config_(config) {
    Renew();
  }

  SegmentId Segment(std::span<const TokenId> tokens) override {
    segments_.push_back(tokens);
    return SegmentId(static_cast<std::uint32_t>(segments_.size() - 1));
  }
  NodeId root() const override { return NodeId(0); }
  NodeId Child(NodeId parent, SegmentId segment) override;
  SourceId Add(NodeId parent, std::unique_ptr<ChildSource> source,
               const SourceOptions& options) override;
  GroupId AddGroup(const StopRule&) override {
    throw Error(ErrorCode::kUnsupported, "the baseline does not stop groups early");
  }
  GroupState group(GroupId) const override { return {}; }
  void Expect(NodeId, double) override {}
  void KeepForLater(bool) override {}
  void Withdraw(NodeId) override { WithdrawAll(); }
  void Withdraw(SourceId source) override;
  bool Next(std::vector<Answer>& answers, const base::CancelFlag* cancel) override;
  std::uint64_t pending() const override;
  const ForestCounters& counters() const override { return counters_; }
  void ResetCounters() override {
    counters_ = {};
    trie_->Forget();
    evictions_before_ = cache_->evictions();
  }
  const ForestConfig& config() const override { return config_; }
  void Clear() override { Renew(); }

 private:
  struct Node {
    NodeId parent;
    SegmentId segment;
    PathTrie::Position position = PathTrie::kRoot;
  };
  struct Source {
    SourceId id;
    NodeId node;
    std::unique_ptr<ChildSource> leaves;
    std::uint16_t step = 0;
  };

  void Renew();
  void WithdrawAll();
  void DropAll();
  void Pull();
  std::vector<TokenId> PathTo(NodeId node) const;
  void Arrive(const Source& source, const std::vector<TokenId>& stem, const Leaf& leaf);
  void Pack();
  bool Begin(Request& request);
  bool Serve(Request& request);
  bool Reserve(Request& request, std::uint32_t end);
  void AddSpans(const Request& request);
  void Emit(Request& request, std::uint32_t end);
  void Finish(Request& request);
  ForestCounters::Step& CountersOf(std::uint16_t step);
  void Run(std::vector<Answer>& answers, const base::CancelFlag* cancel);

  const Model& model_;
  Backend& backend_;
  ForestConfig config_;
  ForestCounters counters_;
  std::vector<std::span<const TokenId>> segments_;
  std::vector<Node> nodes_;
  std::unique_ptr<PathTrie> trie_;
  std::unique_ptr<BlockCache> cache_;
  std::vector<FreshBlock> fresh_;  ///< by block
  std::uint64_t evictions_before_ = 0;
  std::uint64_t chunk_ = 0;
  std::uint32_t next_source_ = 0;
  std::deque<Source> sources_;
  std::deque<Request> waiting_;
  std::optional<Request> partial_;  ///< its path did not fit the last step
  std::vector<Request> done_;       ///< of the step being packed, in the order of their answers
  std::vector<std::pair<std::uint32_t, base::Hash128>> late_names_;
  std::vector<Answer> too_long_;
  PrefillBatch batch_;
};

void RequestQueue::Renew() {
  WithdrawAll();
  segments_.clear();
  nodes_.assign(1, Node{});
  trie_ = std::make_unique<PathTrie>();
  cache_ = std::make_unique<BlockCache>(config_.kv_tokens);
  fresh_.assign(static_cast<std::size_t>(config_.kv_tokens / kBlockTokens), FreshBlock{});
  evictions_before_ = 0;
}

/// A step has failed: what it wrote is not trusted.
void RequestQueue::DropAll() {
  WithdrawAll();
  done_.clear();
  late_names_.clear();
  cache_ = std::make_unique<BlockCache>(config_.kv_tokens);
  fresh_.assign(fresh_.size(), FreshBlock{});
}

void RequestQueue::WithdrawAll() {
  sources_.clear();
  waiting_.clear();
  too_long_.clear();
  if (partial_) Finish(*partial_);
  partial_.reset();
}

NodeId RequestQueue::Child(NodeId parent, SegmentId segment) {
  if (segments_[segment.value()].empty()) return parent;
  Node node{parent, segment, PathTrie::kRoot};
  node.position = trie_
                      ->Insert(nodes_[parent.value()].position, segments_[segment.value()],
                               PathTrie::Keep::kStable)
                      .position;
  nodes_.push_back(node);
  return NodeId(static_cast<std::uint32_t>(nodes_.size() - 1));
}

SourceId RequestQueue::Add(NodeId parent, std::unique_ptr<ChildSource> source,
                           const SourceOptions& options) {
  QUAIL_CHECK(options.readout == ReadoutKind::kTrueFalseMargin && !options.group);
  const SourceId id(next_source_++);
  sources_.push_back({id, parent, std::move(source), options.step});
  return id;
}

void RequestQueue::Withdraw(SourceId source) {
  std::erase_if(sources_, [&](const Source& open) { return open.id == source; });
  std::erase_if(waiting_, [&](const Request& request) { return request.source == source; });
  if (partial_ && partial_->source == source) {
    Finish(*partial_);
    partial_.reset();
  }
}

std::uint64_t RequestQueue::pending() const {
  std::uint64_t asks = waiting_.size() + too_long_.size() + (partial_ ? 1 : 0);
  for (const Source& source : sources_) asks += source.leaves->upper_bound();
  return asks;
}

std::vector<TokenId> RequestQueue::PathTo(NodeId node) const {
  std::vector<std::span<const TokenId>> pieces;
  for (; node != root(); node = nodes_[node.value()].parent) {
    pieces.push_back(segments_[nodes_[node.value()].segment.value()]);
  }
  std::vector<TokenId> path;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    path.insert(path.end(), piece->begin(), piece->end());
  }
  return path;
}

/// Takes leaves of the first sources until a step has enough.
void RequestQueue::Pull() {
  std::vector<Leaf> leaves;
  while (waiting_.size() < kMostRequests && !sources_.empty()) {
    Source& source = sources_.front();
    leaves.clear();
    source.leaves->Next(kMostRequests - waiting_.size(), leaves);
    if (leaves.empty()) {
      sources_.pop_front();
      continue;
    }
    const std::vector<TokenId> stem = PathTo(source.node);
    for (const Leaf& leaf : leaves) Arrive(source, stem, leaf);
  }
}

void RequestQueue::Arrive(const Source& source, const std::vector<TokenId>& stem,
                          const Leaf& leaf) {
  Request request{source.id, leaf.index, source.step, stem, {}, {}, 0};
  request.path.insert(request.path.end(), leaf.tokens.begin(), leaf.tokens.end());
  const auto length = static_cast<std::uint32_t>(request.path.size());
  if (length > config_.kv_tokens / kBlockTokens * kBlockTokens ||
      length > static_cast<std::uint32_t>(config_.context_tokens)) {
    too_long_.push_back({source.id, leaf.index, 0, length, AnswerState::kTooLong});
    return;
  }
  counters_.minimum_tokens += trie_->Count(
      trie_->Insert(nodes_[source.node.value()].position, leaf.tokens, PathTrie::Keep::kCopy)
          .position);
  waiting_.push_back(std::move(request));
}

ForestCounters::Step& RequestQueue::CountersOf(std::uint16_t step) {
  if (counters_.steps.size() <= step) counters_.steps.resize(step + 1U);
  return counters_.steps[step];
}

/// Finds the blocks that the request has in common with earlier ones; its last token is always
/// computed.
bool RequestQueue::Begin(Request& request) {
  const std::span<const TokenId> path = request.path;
  base::Hash128 hash;
  for (std::size_t end = kBlockTokens; end <= path.size(); end += kBlockTokens) {
    hash = base::Combine(
        hash, base::HashBytes(std::as_bytes(path.subspan(end - kBlockTokens, kBlockTokens))));
    request.hashes.push_back(hash);
  }
  for (std::size_t i = 0; (i + 1) * kBlockTokens < path.size(); ++i) {
    const auto block = cache_->Find(request.hashes[i]);
    if (!block) break;
    request.blocks.push_back(*block);
    request.computed += kBlockTokens;
  }
  return Serve(request);
}

bool RequestQueue::Reserve(Request& request, std::uint32_t end) {
  while (request.blocks.size() * kBlockTokens < end) {
    const auto block = cache_->Take();
    if (!block) return false;
    request.blocks.push_back(*block);
  }
  return true;
}

/// Computes what fits the step; false when there is no room for it.
bool RequestQueue::Serve(Request& request) {
  const auto length = static_cast<std::uint32_t>(request.path.size());
  const auto room = static_cast<std::uint32_t>(config_.chunk_tokens - batch_.rows());
  const std::uint32_t end = std::min(length, request.computed + room);
  if (end == request.computed || !Reserve(request, end)) return false;
  Emit(request, end);
  return true;
}

void RequestQueue::AddSpans(const Request& request) {
  const std::size_t first = batch_.spans.size();
  for (std::uint32_t at = 0; at < request.computed;) {
    const std::uint32_t block = request.blocks[at / kBlockTokens];
    const auto length =
        std::min<std::uint32_t>(kBlockTokens, request.computed - at / kBlockTokens * kBlockTokens);
    const bool fresh = fresh_[block].chunk == chunk_;
    const KeySpan span{fresh ? fresh_[block].row : std::int64_t{block} * kBlockTokens,
                       static_cast<std::int32_t>(length),
                       fresh ? KeySpan::Place::kChunk : KeySpan::Place::kArena};
    at += length;
    if (batch_.spans.size() > first) {
      KeySpan& last = batch_.spans.back();
      if (last.place == span.place && last.first + last.length == span.first) {
        last.length += span.length;
        continue;
      }
    }
    batch_.spans.push_back(span);
  }
  batch_.runs.back().first_span = static_cast<std::int32_t>(first);
  batch_.runs.back().span_count = static_cast<std::int32_t>(batch_.spans.size() - first);
}

void RequestQueue::Emit(Request& request, std::uint32_t end) {
  const std::int32_t first_row = batch_.rows();
  const std::uint32_t begin = request.computed;
  batch_.runs.push_back({first_row, static_cast<std::int32_t>(end - begin), 0, 0});
  AddSpans(request);
  counters_.attention_pairs +=
      std::uint64_t{end - begin} * begin + std::uint64_t{end - begin} * (end - begin + 1) / 2;
  for (std::uint32_t at = begin; at < end; ++at) {
    const std::uint32_t block = request.blocks[at / kBlockTokens];
    batch_.tokens.push_back(request.path[at].value());
    batch_.positions.push_back(static_cast<std::int32_t>(at));
    batch_.kv_slots.push_back(std::int64_t{block} * kBlockTokens + at % kBlockTokens);
    const std::int32_t row = first_row + static_cast<std::int32_t>(at - begin);
    if (at % kBlockTokens == 0) fresh_[block] = {chunk_, row};
    if (at % kBlockTokens != kBlockTokens - 1) continue;
    const base::Hash128& hash = request.hashes[at / kBlockTokens];
    // A block whose beginning is in the arena already has no rows of its own to be read from.
    if (fresh_[block].chunk == chunk_) {
      cache_->Name(block, hash);
    } else {
      late_names_.emplace_back(block, hash);
    }
  }
  CountersOf(request.step).fresh_tokens += end - begin;
  request.computed = end;
}

void RequestQueue::Finish(Request& request) {
  // The end of a path is of use to fewer than its beginning: it goes first.
  for (auto block = request.blocks.rbegin(); block != request.blocks.rend(); ++block) {
    cache_->Release(*block);
  }
}

void RequestQueue::Pack() {
  batch_.Clear();
  done_.clear();
  ++chunk_;
  const auto place = [&](Request& request) {
    if (request.computed < request.path.size()) {
      partial_ = std::move(request);
      return;
    }
    batch_.answer_rows.push_back(batch_.rows() - 1);
    done_.push_back(std::move(request));
  };
  if (partial_) {
    Request request = std::move(*partial_);
    partial_.reset();
    QUAIL_CHECK_MSG(Serve(request), "the oldest request finds no room");
    place(request);
  }
  while (!partial_ && !waiting_.empty() && batch_.rows() < config_.chunk_tokens &&
         done_.size() < kMostRequests) {
    Request& request = waiting_.front();
    if (!Begin(request)) {
      Finish(request);
      request.blocks.clear();
      request.hashes.clear();
      request.computed = 0;
      return;
    }
    place(request);
    waiting_.pop_front();
  }
}

void RequestQueue::Run(std::vector<Answer>& answers, const base::CancelFlag* cancel) {
  const base::Stopwatch watch;
  const auto chunk = backend_.Begin(batch_);
  const bool complete = model_.Forward(backend_, *chunk, batch_, cancel);
  if (!complete) throw Error(ErrorCode::kInterrupted, "interrupted");
  const ChunkResult result = backend_.Wait(*chunk);
  counters_.model_seconds += watch.seconds();
  ++counters_.chunks;
  counters_.chunk_sizes.push_back(batch_.rows());
  const auto columns = static_cast<std::size_t>(config_.answer_rows);
  for (std::size_t i = 0; i < done_.size(); ++i) {
    Request& request = done_[i];
    const auto margin =
        TrueFalseMargin(result.answer_logits.subspan(i * columns, columns), config_.true_rows);
    const auto length = static_cast<std::uint32_t>(request.path.size());
    answers.push_back({request.source, request.index, margin.value_or(0), length,
                       margin ? AnswerState::kValue : AnswerState::kNonFinite});
    ForestCounters::Step& step = CountersOf(request.step);
    ++step.asks;
    step.requested_tokens += length;
    Finish(request);
  }
  done_.clear();
  for (const auto& [block, hash] : late_names_) cache_->Name(block, hash);
  late_names_.clear();
}

bool RequestQueue::Next(std::vector<Answer>& answers, const base::CancelFlag* cancel) {
  const std::size_t before = answers.size();
  if (!done_.empty()) DropAll();
  while (answers.size() == before) {
    if (cancel != nullptr && cancel->cancelled()) {
      WithdrawAll();
      throw Error(ErrorCode::kInterrupted, "interrupted");
    }
    Pull();
    std::ranges::move(too_long_, std::back_inserter(answers));
    too_long_.clear();
    if (waiting_.empty() && !partial_) return answers.size() > before;
    Pack();
    counters_.kv_peak_tokens =
        std::max(counters_.kv_peak_tokens, cache_->used_blocks() * kBlockTokens);
    Run(answers, cancel);
    counters_.evictions = cache_->evictions() - evictions_before_;
  }
  return true;
}

}  // namespace

std::unique_ptr<PromptForest> CreateRequestQueue(const Model& model, Backend& backend,
                                                 const ForestConfig& config) {
  return std::make_unique<RequestQueue>(model, backend, config);
}

}  // namespace quail::infer
