#include "infer/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"

namespace quail::infer {
namespace {

constexpr std::uint64_t kLargestWindow = 4096;
constexpr std::uint64_t kSmallestWindow = 64;
/// Leaves above this part of a chunk are cut anywhere; shorter ones are packed whole.
constexpr std::uint32_t kLongPart = 4;

/// Orders by the first three tokens as 21-bit numbers; equal keys need a full comparison.
std::uint64_t SortKey(std::span<const TokenId> tokens) {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t digit =
        i < tokens.size() ? static_cast<std::uint64_t>(tokens[i].value()) + 1 : 0;
    key = (key << 21) | std::min<std::uint64_t>(digit, (1U << 21) - 1);
  }
  return key;
}

bool TokensLess(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::uint32_t Scheduler::TakeSlot() {
  if (unused_slots_.empty()) {
    parts_.sources.Append();
    return static_cast<std::uint32_t>(parts_.sources.size() - 1);
  }
  const std::uint32_t slot = unused_slots_.back();
  unused_slots_.pop_back();
  return slot;
}

SourceId Scheduler::Add(std::uint32_t node, std::unique_ptr<ChildSource> stream,
                        const SourceOptions& options) {
  QUAIL_CHECK(node < parts_.nodes.size() && stream != nullptr);
  const auto id = static_cast<std::uint32_t>(slots_.size());
  const std::uint64_t bound = stream->upper_bound();
  const std::uint32_t group = options.group ? options.group->value() : kNoGroup;
  if (group != kNoGroup && groups_[group].state.stopped) {
    groups_[group].state.dropped += bound;
    slots_.push_back(kNoSource);
    return SourceId(id);
  }
  const std::uint32_t slot = TakeSlot();
  slots_.push_back(slot);
  NamedNode& named = parts_.nodes[node];
  Source& source = parts_.sources[slot];
  source.stream = std::move(stream);
  source.bound = bound;
  source.id = id;
  source.node = node;
  source.kv = named.kv;
  source.priority = options.priority;
  source.group = group;
  source.step = options.step;
  source.readout = options.readout;
  source.node_next = named.first_source;
  if (named.first_source != kNoSource) parts_.sources[named.first_source].node_previous = slot;
  named.first_source = slot;
  if (group != kNoGroup) groups_[group].sources.push_back(id);
  waiting_ += bound;
  ++live_;
  parts_.cache.AddDemand(source.kv, 1);
  parts_.order.Add(slot);
  return SourceId(id);
}

GroupId Scheduler::AddGroup(const StopRule& rule) {
  groups_.emplace_back();
  groups_.back().rule = rule;
  groups_.back().rule.enough = std::max<std::uint64_t>(1, rule.enough);
  groups_.back().rule.selectivity = std::clamp(rule.selectivity, 1e-6, 1.0);
  return GroupId(static_cast<std::uint32_t>(groups_.size() - 1));
}

std::uint64_t Scheduler::Allowance(const Group& group) const {
  // Pass rate with a prior of one TRUE in 1 / selectivity answers.
  const double rate = (1.0 + static_cast<double>(group.state.yes)) /
                      (1.0 / group.rule.selectivity + static_cast<double>(group.state.answered));
  const auto missing = static_cast<double>(group.rule.enough - group.state.yes);
  const auto wave = static_cast<std::uint64_t>(std::min(1e18, std::ceil(missing / rate)));
  return wave > group.under_way ? wave - group.under_way : 0;
}

std::uint32_t Scheduler::Next(std::int32_t rows) {
  for (;;) {
    const std::uint32_t slot = parts_.order.First();
    if (slot == kNoSource || parts_.sources[slot].in_window() > 0) return slot;
    const KvNode& node = parts_.tree[parts_.sources[slot].kv];  // to be packed next
    base::Prefetch(node.tokens, node.length * sizeof(TokenId));
    if (Pull(slot, rows)) return slot;
  }
}

bool Scheduler::Pull(std::uint32_t slot, std::int32_t rows) {
  const std::uint32_t group = parts_.sources[slot].group;
  const bool pulled = PullLeaves(slot, rows);
  // Each source that is woken stands for a leaf of the wave: where it has none, another takes its
  // place.
  if (!pulled && group != kNoGroup) Wake(groups_[group], 1);
  return pulled;
}

bool Scheduler::PullLeaves(std::uint32_t slot, std::int32_t rows) {
  Source& source = parts_.sources[slot];
  if (source.bound == 0) {
    Finish(slot);
    return false;
  }
  std::uint64_t wanted = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(rows) / 8,
                                                   kSmallestWindow, kLargestWindow);
  if (source.group != kNoGroup) {
    Group& group = groups_[source.group];
    wanted = std::min(wanted, Allowance(group));
    if (wanted == 0) {
      parts_.order.Remove(slot);
      group.waiting.push_back(source.id);
      return false;
    }
  }
  std::vector<Leaf>& leaves = EmptyWindow(source).leaves;
  source.stream->Next(static_cast<std::size_t>(std::min(wanted, source.bound)), leaves);
  waiting_ -= source.bound;
  source.bound = leaves.empty() ? 0 : source.stream->upper_bound();
  if (source.group != kNoGroup) groups_[source.group].under_way += leaves.size();
  Receive(source);
  waiting_ += source.bound + leaves.size();
  if (leaves.empty()) {
    if (source.bound == 0) Finish(slot);
    return false;
  }
  return true;
}

SourceWindow& Scheduler::EmptyWindow(Source& source) {
  if (source.window == nullptr && !unused_windows_.empty()) {
    source.window = std::move(unused_windows_.back());
    unused_windows_.pop_back();
  } else if (source.window == nullptr) {
    source.window = std::make_unique<SourceWindow>();
  }
  source.window->leaves.clear();
  source.window->next = 0;
  return *source.window;
}

void Scheduler::Receive(Source& source) {
  const std::int64_t limit = parts_.config.LongestPrompt();
  const std::uint32_t before = parts_.tree[source.kv].end();
  const auto too_long = [&](const Leaf& leaf) {
    QUAIL_CHECK(!leaf.tokens.empty());
    const std::uint64_t length = before + leaf.tokens.size();
    if (static_cast<std::int64_t>(length) <= limit) return false;
    too_long_.push_back({SourceId(source.id), leaf.index, 0.0F, static_cast<std::uint32_t>(length),
                         AnswerState::kTooLong});
    return true;
  };
  std::vector<Leaf>& leaves = source.window->leaves;
  const auto kept = std::remove_if(leaves.begin(), leaves.end(), too_long);
  const auto dropped = static_cast<std::uint64_t>(leaves.end() - kept);
  leaves.erase(kept, leaves.end());
  if (source.group != kNoGroup) {
    groups_[source.group].under_way -= dropped;
    groups_[source.group].state.answered += dropped;
  }
  SortWindow(*source.window, source.readout);
}

void Scheduler::SortWindow(SourceWindow& window, ReadoutKind readout) {
  const auto longest = static_cast<std::size_t>(parts_.config.chunk_tokens) / kLongPart;
  const bool all_long =
      parts_.config.radix == RadixMode::kAlways && readout == ReadoutKind::kTrueFalseMargin;
  const auto is_short = [&](const Leaf& leaf) {
    return !all_long && leaf.tokens.size() <= longest;
  };
  std::vector<Leaf>& leaves = window.leaves;
  if (leaves.size() == 1) {
    window.short_leaves = is_short(leaves[0]) ? 1 : 0;
    return;
  }
  const auto cut = std::stable_partition(leaves.begin(), leaves.end(), is_short);
  window.short_leaves = static_cast<std::uint32_t>(cut - leaves.begin());
  if (parts_.config.radix == RadixMode::kNever || window.short_leaves < 2) return;
  sort_keys_.clear();
  for (std::uint32_t i = 0; i < window.short_leaves; ++i) {
    sort_keys_.emplace_back(SortKey(leaves[i].tokens), i);
  }
  std::sort(sort_keys_.begin(), sort_keys_.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const std::span<const TokenId> first = leaves[a.second].tokens;
    const std::span<const TokenId> second = leaves[b.second].tokens;
    if (TokensLess(first, second)) return true;
    return !TokensLess(second, first) && a.second < b.second;
  });
  sorted_.assign(leaves.begin(), cut);
  for (std::uint32_t i = 0; i < window.short_leaves; ++i) {
    leaves[i] = sorted_[sort_keys_[i].second];
  }
}

void Scheduler::LeafPacked(std::uint32_t slot) {
  ++parts_.sources[slot].window->next;
  --waiting_;
}

void Scheduler::Settle(std::uint32_t slot) {
  Source& source = parts_.sources[slot];
  if (source.in_window() == 0 && source.bound == 0) Finish(slot);
}

KvId Scheduler::Target(std::uint32_t slot) {
  const Source& source = parts_.sources[slot];
  SourceWindow& window = *source.window;
  if (window.target != kNoKv) return window.target;
  const std::span<const TokenId> tokens = window.leaves[window.next].tokens;
  window.target_private =
      parts_.config.radix != RadixMode::kAlways || source.readout != ReadoutKind::kTrueFalseMargin;
  window.target = window.target_private ? parts_.tree.Add(source.kv, tokens)
                                        : parts_.nodes.AttachLeaf(source.node, tokens);
  window.target_scored = 0;
  window.target_serial = source.readout == ReadoutKind::kLogProbability ? ++last_serial_ : 0;
  parts_.cache.AddDemand(window.target, 1);
  return window.target;
}

void Scheduler::ReleaseTarget(std::uint32_t slot) {
  const Source& source = parts_.sources[slot];
  if (source.window == nullptr || source.window->target == kNoKv) return;
  const KvId target = std::exchange(source.window->target, kNoKv);
  parts_.cache.AddDemand(target, -1);
  if (source.window->target_private) parts_.cache.Remove(target);
}

void Scheduler::Answered(std::uint32_t index, bool yes) {
  if (index == kNoGroup) return;
  Group& group = groups_[index];
  --group.under_way;
  ++group.state.answered;
  group.state.yes += yes ? 1 : 0;
  if (group.state.stopped) return;
  if (group.state.yes >= group.rule.enough) {
    StopGroup(group);
  } else if (!group.answered) {
    group.answered = true;
    answered_groups_.push_back(index);
  }
}

void Scheduler::StartWaves() {
  for (const std::uint32_t index : answered_groups_) {
    groups_[index].answered = false;
    Wake(groups_[index], kNoSource);
  }
  answered_groups_.clear();
}

void Scheduler::Wake(Group& group, std::uint64_t most) {
  if (group.state.stopped || group.waiting_next == group.waiting.size()) return;
  most = std::min(most, Allowance(group));
  for (; most > 0 && group.waiting_next < group.waiting.size(); ++group.waiting_next) {
    const std::uint32_t slot = SlotOf(group.waiting[group.waiting_next]);
    if (slot == kNoSource) continue;
    parts_.order.Add(slot);
    --most;
  }
  if (2 * group.waiting_next < group.waiting.size()) return;
  group.waiting.erase(group.waiting.begin(),
                      group.waiting.begin() + static_cast<std::ptrdiff_t>(group.waiting_next));
  group.waiting_next = 0;
}

void Scheduler::StopGroup(Group& group) {
  group.state.stopped = true;
  for (const std::uint32_t id : group.sources) {
    const std::uint32_t slot = SlotOf(id);
    if (slot == kNoSource) continue;
    const Source& source = parts_.sources[slot];
    group.state.dropped += source.bound + source.in_window();
    Withdraw(slot);
  }
  std::vector<std::uint32_t>().swap(group.sources);
  std::vector<std::uint32_t>().swap(group.waiting);
  group.waiting_next = 0;
}

void Scheduler::Withdraw(std::uint32_t slot) {
  Source& source = parts_.sources[slot];
  ReleaseTarget(slot);
  if (source.group != kNoGroup) groups_[source.group].under_way -= source.in_window();
  waiting_ -= source.bound + source.in_window();
  const std::uint32_t group = source.group;
  Finish(slot);
  if (group != kNoGroup) Wake(groups_[group], kNoSource);
}

void Scheduler::WithdrawSource(SourceId source) {
  QUAIL_CHECK_LT(source.value(), slots_.size());
  const std::uint32_t slot = SlotOf(source.value());
  if (slot != kNoSource) Withdraw(slot);
}

void Scheduler::WithdrawNode(std::uint32_t node) {
  std::vector<std::uint32_t> open{node};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    while (parts_.nodes[at].first_source != kNoSource) Withdraw(parts_.nodes[at].first_source);
    for (std::uint32_t child = parts_.nodes[at].first_child; child != PathTrie::kNone;
         child = parts_.nodes[child].next_sibling) {
      open.push_back(child);
    }
  }
}

void Scheduler::WithdrawAll() {
  for (std::uint32_t slot = 0; slot < parts_.sources.size(); ++slot) {
    if (parts_.sources[slot].stream != nullptr) Withdraw(slot);
  }
  for (Group& group : groups_) {
    group.under_way = 0;
    group.waiting.clear();
    group.waiting_next = 0;
    group.sources.clear();
  }
  too_long_.clear();
}

void Scheduler::Finish(std::uint32_t slot) {
  Source& source = parts_.sources[slot];
  if (source.window != nullptr) {
    QUAIL_CHECK(source.window->target == kNoKv);
    unused_windows_.push_back(std::move(source.window));
  }
  parts_.order.Remove(slot);
  parts_.cache.AddDemand(source.kv, -1);
  NamedNode& named = parts_.nodes[source.node];
  (source.node_previous == kNoSource ? named.first_source
                                     : parts_.sources[source.node_previous].node_next) =
      source.node_next;
  if (source.node_next != kNoSource) {
    parts_.sources[source.node_next].node_previous = source.node_previous;
  }
  if (named.first_source == kNoSource) parts_.trie.Retire(named.position);
  slots_[source.id] = kNoSource;
  source = Source{};
  unused_slots_.push_back(slot);
  --live_;
}

}  // namespace quail::infer
