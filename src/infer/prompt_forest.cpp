#include "infer/prompt_forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <new>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "infer/backend.h"
#include "infer/model.h"
#include "infer/packer.h"
#include "infer/readout.h"
#include "infer/scheduler.h"
#include "quail/error.h"

namespace quail::infer {
namespace {

constexpr std::size_t kChunksInFlight = 2;

class Forest final : public PromptForest {
 public:
  Forest(const Model& model, Backend& backend, const ForestConfig& config)
      : model_(model), backend_(backend), config_(config) {
    QUAIL_CHECK(config.kv_tokens > 0 && config.chunk_tokens > 0 && config.context_tokens > 0);
    Renew();
  }
  ~Forest() override { DrainQuietly(); }

  SegmentId Segment(std::span<const TokenId> tokens) override {
    return OrForget([&] { return parts_->nodes.Intern(tokens); });
  }
  NodeId root() const override { return NodeId(0); }
  NodeId Child(NodeId parent, SegmentId segment) override {
    CheckOutside();
    return OrForget([&] { return NodeId(parts_->nodes.Child(parent.value(), segment)); });
  }
  SourceId Add(NodeId parent, std::unique_ptr<ChildSource> source,
               const SourceOptions& options) override {
    CheckOutside();
    return OrForget([&] { return scheduler_->Add(parent.value(), std::move(source), options); });
  }
  GroupId AddGroup(const StopRule& rule) override {
    return OrForget([&] { return scheduler_->AddGroup(rule); });
  }
  GroupState group(GroupId group) const override { return scheduler_->group(group); }

  void Expect(NodeId node, double p) override {
    OrForget([&] {
      parts_->cache.SetChance(parts_->nodes[node.value()].kv,
                              static_cast<float>(std::clamp(p, 0.0, 1.0)));
    });
  }
  void KeepForLater(bool keep) override {
    config_.keep_for_later = keep;
    parts_->config.keep_for_later = keep;
  }
  void Withdraw(NodeId node) override {
    CheckOutside();
    OrForget([&] { scheduler_->WithdrawNode(node.value()); });
  }
  void Withdraw(SourceId source) override {
    CheckOutside();
    OrForget([&] { scheduler_->WithdrawSource(source); });
  }

  bool Next(std::vector<Answer>& answers, const base::CancelFlag* cancel) override;
  std::uint64_t pending() const override {
    return scheduler_->waiting() + scheduler_->too_long().size() + asks_in_chunks_ +
           packer_->asks();
  }

  const ForestCounters& counters() const override { return counters_; }
  void ResetCounters() override {
    counters_ = {};
    parts_->cache.ResetPeak();
    parts_->cache.ResetEvictions();
    parts_->trie.Forget();
    parts_->cache.ForgetComputed();
  }
  const ForestConfig& config() const override { return config_; }
  void Clear() override {
    CheckOutside();
    Forget();
  }

 private:
  struct InFlight {
    std::unique_ptr<Chunk> chunk;
    PackedChunk packed;
  };

  void Renew() {
    packer_.reset();
    scheduler_.reset();
    parts_.reset();
    parts_ = std::make_unique<ForestParts>(config_, backend_.info().kv_alignment);
    scheduler_ = std::make_unique<Scheduler>(*parts_);
    packer_ = std::make_unique<Packer>(*parts_, *scheduler_, counters_);
  }
  /// A child source must not change the forest that is pulling it.
  void CheckOutside() const { QUAIL_CHECK_MSG(!packing_, "a child source changes its forest"); }

  /// Runs `call`. Where memory runs out in the midst of it what it leaves half done is not trusted:
  /// all is forgotten.
  template <typename Call>
  auto OrForget(Call call) -> decltype(call()) {
    try {
      return call();
    } catch (const std::bad_alloc&) {
      packing_ = false;
      Forget();
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("no memory for the records of the prompts, beside chunks of up to {} "
                              "tokens",
                              config_.chunk_tokens));
    }
  }
  void Forget() {
    DrainQuietly();
    Renew();
    long_sums_.clear();
    UpdateCounters();
  }

  bool Step(std::vector<Answer>& answers, const base::CancelFlag* cancel);
  void FillChunk();
  void Launch(const base::CancelFlag* cancel);
  void ReadOldest(std::vector<Answer>& answers);
  void ReadScores(const PackedChunk& packed, std::span<const float> log_probs);
  Answer Read(const PackedAsk& ask, std::size_t index, std::span<const float> logits);
  void DeliverTooLong(std::vector<Answer>& answers);
  void UpdateCounters();
  void Abort();
  void DrainQuietly() noexcept;

  const Model& model_;
  Backend& backend_;
  ForestConfig config_;
  ForestCounters counters_;
  std::unique_ptr<ForestParts> parts_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Packer> packer_;
  std::deque<InFlight> in_flight_;
  std::uint64_t asks_in_chunks_ = 0;
  std::vector<double> score_sums_;  ///< by ask of the chunk being read
  std::unordered_map<std::uint64_t, double>
      long_sums_;  ///< by serial: leaves scored over several chunks
  bool packing_ = false;
};

bool Forest::Next(std::vector<Answer>& answers, const base::CancelFlag* cancel) {
  CheckOutside();
  return OrForget([&] {
    try {
      const bool more = Step(answers, cancel);
      UpdateCounters();
      return more;
    } catch (const Error&) {
      packing_ = false;
      Abort();
      UpdateCounters();
      throw;
    }
  });
}

bool Forest::Step(std::vector<Answer>& answers, const base::CancelFlag* cancel) {
  const std::size_t before = answers.size();
  for (;;) {
    if (cancel != nullptr && cancel->cancelled()) {
      throw Error(ErrorCode::kInterrupted, "interrupted");
    }
    while (in_flight_.size() < kChunksInFlight) {
      FillChunk();
      // A chunk that is not full waits for what the answers on their way bring.
      if (packer_->empty() || (!packer_->full() && !in_flight_.empty())) break;
      Launch(cancel);
    }
    DeliverTooLong(answers);
    if (in_flight_.empty()) {
      QUAIL_CHECK(packer_->empty() && scheduler_->live_sources() == 0);
      long_sums_.clear();
      return answers.size() > before;
    }
    ReadOldest(answers);
    if (answers.size() > before) return true;
  }
}

void Forest::FillChunk() {
  packing_ = true;
  packer_->Fill();
  packing_ = false;
}

void Forest::Launch(const base::CancelFlag* cancel) {
  InFlight next;
  next.packed = packer_->Close();
  asks_in_chunks_ += next.packed.asks.size();
  ++counters_.chunks;
  counters_.chunk_sizes.push_back(next.packed.rows);
  const base::Stopwatch watch;
  bool done = false;
  try {
    next.chunk = backend_.Begin(packer_->batch());
    done = model_.Forward(backend_, *next.chunk, packer_->batch(), cancel);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("no memory for a forward pass over {} tokens", next.packed.rows));
  }
  counters_.model_seconds += watch.seconds();
  if (!done) throw Error(ErrorCode::kInterrupted, "interrupted");
  in_flight_.push_back(std::move(next));
  packer_->Clear();
}

void Forest::ReadOldest(std::vector<Answer>& answers) {
  const base::Stopwatch watch;
  const ChunkResult result = backend_.Wait(*in_flight_.front().chunk);
  counters_.model_seconds += watch.seconds();
  const PackedChunk& packed = in_flight_.front().packed;
  QUAIL_CHECK_EQ(result.answer_logits.size(), static_cast<std::size_t>(packed.answer_rows) *
                                                  static_cast<std::size_t>(config_.answer_rows));
  QUAIL_CHECK_EQ(result.log_probs.size(), packed.scores.size());
  ReadScores(packed, result.log_probs);
  for (std::size_t i = 0; i < packed.asks.size(); ++i) {
    answers.push_back(Read(packed.asks[i], i, result.answer_logits));
    const bool yes =
        packed.asks[i].readout == ReadoutKind::kTrueFalseMargin && answers.back().value > 0;
    scheduler_->Answered(packed.asks[i].group, yes);
  }
  scheduler_->StartWaves();
  asks_in_chunks_ -= packed.asks.size();
  in_flight_.pop_front();
}

void Forest::ReadScores(const PackedChunk& packed, std::span<const float> log_probs) {
  score_sums_.assign(packed.scores.empty() ? 0 : packed.asks.size(), 0.0);
  for (std::size_t i = 0; i < packed.scores.size(); ++i) {
    const PackedScore& score = packed.scores[i];
    (score.serial != 0 ? long_sums_[score.serial] : score_sums_[score.ask]) +=
        static_cast<double>(log_probs[i]);
  }
}

Answer Forest::Read(const PackedAsk& ask, std::size_t index, std::span<const float> logits) {
  Answer answer{ask.source, ask.index, 0.0F, ask.path_tokens, AnswerState::kValue};
  if (ask.readout == ReadoutKind::kTrueFalseMargin) {
    const auto columns = static_cast<std::size_t>(config_.answer_rows);
    const auto row = logits.subspan(static_cast<std::size_t>(ask.row) * columns, columns);
    answer.value = TrueFalseMargin(row, config_.true_rows).value_or(NAN);
  } else if (ask.serial != 0) {
    answer.value = static_cast<float>(long_sums_[ask.serial]);
    long_sums_.erase(ask.serial);
  } else if (index < score_sums_.size()) {
    answer.value = static_cast<float>(score_sums_[index]);
  }
  if (!std::isfinite(answer.value)) {
    answer.value = 0;
    answer.state = AnswerState::kNonFinite;
  }
  return answer;
}

void Forest::DeliverTooLong(std::vector<Answer>& answers) {
  std::vector<Answer>& ready = scheduler_->too_long();
  for (const Answer& answer : ready) answers.push_back(answer);
  ready.clear();
}

void Forest::UpdateCounters() {
  counters_.evictions = parts_->cache.evictions();
  counters_.kv_peak_tokens = parts_->cache.peak();
  counters_.kv_held_tokens = parts_->cache.held();
}

/// Ends all work after a failure or a cancel: what chunks in flight wrote or did not write is not
/// trusted.
void Forest::Abort() {
  DrainQuietly();
  packer_->Clear();
  scheduler_->WithdrawAll();
  parts_->cache.DropAll();
  long_sums_.clear();
}

void Forest::DrainQuietly() noexcept {
  for (InFlight& flight : in_flight_) {
    try {
      backend_.Wait(*flight.chunk);
    } catch (const std::exception&) {
      // The failure that led here is the one that is reported.
    }
  }
  in_flight_.clear();
  asks_in_chunks_ = 0;
}

}  // namespace

std::unique_ptr<PromptForest> PromptForest::Create(const Model& model, Backend& backend,
                                                   const ForestConfig& config) {
  return std::make_unique<Forest>(model, backend, config);
}

std::int32_t ForestCounters::MedianChunk() const {
  QUAIL_CHECK(!chunk_sizes.empty());
  std::vector<std::int32_t> sizes = chunk_sizes;
  const auto median = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::ranges::nth_element(sizes, median);
  return *median;
}

}  // namespace quail::infer
