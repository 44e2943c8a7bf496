#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/strong_id.h"

/// The waist between execution and inference: a tree of token segments with content identity, asks
/// at its leaves. It knows no SQL and no rows.
namespace quail::infer {

class Backend;
class Model;

using base::TokenId;
/// An interned run of tokens.
using SegmentId = base::StrongId<struct SegmentIdTag, std::uint32_t>;
/// A segment after a parent node. Its path is all tokens from the root; its KV depends on the path
/// alone.
using NodeId = base::StrongId<struct NodeIdTag, std::uint32_t>;
/// A stream of asks under one node.
using SourceId = base::StrongId<struct SourceIdTag, std::uint32_t>;
/// Sources that stop together.
using GroupId = base::StrongId<struct GroupIdTag, std::uint32_t>;

/// What is read at an ask.
enum class ReadoutKind : std::uint8_t {
  kTrueFalseMargin,  ///< best TRUE logit minus best FALSE logit after the leaf's last token
  kLogProbability,  ///< summed log-probability of the leaf's tokens but the first, which is context
};

/// A leaf as its source gives it. `tokens` stay valid until the ask's answer has been returned by
/// Next, or its source has been withdrawn. REQUIRES: at least one token.
struct Leaf {
  std::uint64_t index = 0;  ///< chosen by the source; comes back in the answer
  std::span<const TokenId> tokens;
  bool stable = false;  ///< the tokens outlive the forest, which then need not copy them
};

/// Pulled by the forest when there is room: the many asks under one node, never interned, two bits
/// each.
class ChildSource {
 public:
  virtual ~ChildSource() = default;
  /// No more than this many leaves are still to come.
  virtual std::uint64_t upper_bound() const = 0;
  /// Appends at most `n` leaves; none means that the source is exhausted.
  virtual void Next(std::size_t n, std::vector<Leaf>& leaves) = 0;
};

enum class AnswerState : std::uint8_t {
  kValue,      ///< `value` holds the margin or log-probability
  kNonFinite,  ///< the logits were not finite
  kTooLong,  ///< the path exceeds the model's context or the KV arena; `path_tokens` says how long
             ///< it is
};

struct Answer {
  SourceId source;
  std::uint64_t index = 0;
  float value = 0;
  std::uint32_t path_tokens = 0;
  AnswerState state = AnswerState::kValue;
};

/// Sources of a group are asked until `enough` of their answers were TRUE (margin > 0), in waves of
/// about enough / selectivity asks; the rest is dropped unasked, `GroupState` says how many.
struct StopRule {
  std::uint64_t enough = 1;
  double selectivity = 0.2;
};
struct GroupState {
  std::uint64_t answered = 0;
  std::uint64_t yes = 0;
  std::uint64_t dropped =
      0;  ///< upper bound of leaves that were never asked, once the group has stopped
  bool stopped = false;
};

struct SourceOptions {
  ReadoutKind readout = ReadoutKind::kTrueFalseMargin;
  std::int32_t priority = 0;  ///< higher first, among what could run next
  std::optional<GroupId> group = std::nullopt;
  std::uint16_t step = 0;  ///< whose counters it adds to
};

/// When children's segments that begin alike are split so that the common tokens are computed once.
enum class RadixMode : std::uint8_t {
  kWherePays,  ///< where the saved compute exceeds the cost of another span
  kAlways,     ///< fresh tokens = minimum tokens with unlimited KV
  kNever,
};

struct ForestConfig {
  std::int64_t kv_tokens = 0;       ///< capacity of the KV arena, in positions
  std::int32_t chunk_tokens = 0;    ///< most fresh tokens a forward pass
  std::int32_t context_tokens = 0;  ///< longest path
  RadixMode radix = RadixMode::kWherePays;
  bool keep_for_later = false;  ///< PromptForest::KeepForLater
  /// Rows of the answer head: the first `true_rows` belong to TRUE, the others to FALSE.
  std::int32_t true_rows = 0;
  std::int32_t answer_rows = 0;

  /// The longest prompt that can be asked, in tokens.
  std::int64_t LongestPrompt() const { return std::min<std::int64_t>(context_tokens, kv_tokens); }
};

/// Tokens and asks since the last ResetCounters; `steps` by SourceOptions::step.
struct ForestCounters {
  struct Step {
    std::uint64_t asks = 0;
    std::uint64_t requested_tokens = 0;  ///< full path lengths of all asks
    std::uint64_t fresh_tokens = 0;      ///< positions run through the model for this step's asks
    std::uint64_t recomputed_tokens =
        0;  ///< of these, positions that had been computed before and evicted
  };
  std::vector<Step> steps;
  std::uint64_t minimum_tokens = 0;  ///< each distinct path of what was asked once, unlimited KV
  std::uint64_t chunks = 0;
  std::vector<std::int32_t> chunk_sizes;  ///< fresh tokens a chunk, in order
  std::uint64_t evictions = 0;            ///< nodes whose KV was dropped while still wanted
  std::int64_t kv_peak_tokens = 0;        ///< most KV held at a time by nodes that were wanted
  std::int64_t kv_held_tokens = 0;        ///< KV held by such nodes after the last Next
  std::uint64_t attention_pairs = 0;      ///< query-key pairs of one head, summed over all rows
  double model_seconds = 0;               ///< wall time in forward passes

  /// Of chunk_sizes, the upper one of two. REQUIRES: there are any.
  std::int32_t MedianChunk() const;
};

/// Plans, packs and runs asks over a model with KV computed once a path. One thread. The tokens of
/// segments must stay valid as long as the forest (they live in the text store). After
/// Error{kOutOfMemory}, which any call can throw, ids from before may be void, as after Clear.
class PromptForest {
 public:
  /// `model` and `backend` outlive the forest; ReserveKv has been done with at least
  /// `config.kv_tokens`.
  static std::unique_ptr<PromptForest> Create(const Model& model, Backend& backend,
                                              const ForestConfig& config);
  virtual ~PromptForest() = default;

  /// A segment for Child. Long runs are not looked up: the same tokens can then be two segments, of
  /// which Child makes one node.
  virtual SegmentId Segment(std::span<const TokenId> tokens) = 0;
  virtual NodeId root() const = 0;
  /// The node of `segment` after `parent`: the same path is the same node. An empty segment is the
  /// parent itself.
  virtual NodeId Child(NodeId parent, SegmentId segment) = 0;
  virtual SourceId Add(NodeId parent, std::unique_ptr<ChildSource> source,
                       const SourceOptions& options) = 0;
  virtual GroupId AddGroup(const StopRule& rule) = 0;
  virtual GroupState group(GroupId group) const = 0;

  /// The KV of `node` may be wanted after its present asks, with probability `p`; 0 takes it back.
  /// The forest keeps what is worth its room.
  virtual void Expect(NodeId node, double p) = 0;
  /// Whether KV that nobody is known to want is kept where room is free, for questions that nobody
  /// knows of yet: of what is kept so, the oldest makes room first. Off at first: then what nobody
  /// will read again is written nowhere.
  virtual void KeepForLater(bool keep) = 0;
  /// Nothing below `node` is asked any more; answers on their way may still come.
  virtual void Withdraw(NodeId node) = 0;
  virtual void Withdraw(SourceId source) = 0;

  /// Runs until answers are there and appends them; false when no ask is left. While one chunk
  /// computes the next is packed, so asks added after this call join the chunk after that. When
  /// `cancel` gets set: Error{kInterrupted} in under a second, all work dropped, all KV returned;
  /// answers delivered before stay valid. So with any other Error.
  virtual bool Next(std::vector<Answer>& answers, const base::CancelFlag* cancel) = 0;
  /// Upper bound of the asks still to be answered.
  virtual std::uint64_t pending() const = 0;

  virtual const ForestCounters& counters() const = 0;
  virtual void ResetCounters() = 0;
  virtual const ForestConfig& config() const = 0;
  /// Drops all KV, nodes and segments: ids from before are void.
  virtual void Clear() = 0;
};

}  // namespace quail::infer
